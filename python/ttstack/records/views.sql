-- What `ttx records query` may ask: one row a line, a run, a phase, or a kind of values of a cell.
-- Times are UTC. A field that a line has not is NULL; `line` holds all of it.

CREATE VIEW opened AS
SELECT
    line->>'$.run' AS run,
    line->>'$.id' AS id,
    CAST(rtrim(line->>'$.time', 'Z') AS TIMESTAMP) AS time,
    line->>'$.verb' AS verb,
    line->>'$.arm' AS arm,
    CAST(line->>'$.simulated' AS BOOLEAN) AS simulated,
    line->>'$.asked.suite' AS suite,
    line->>'$.asked.pin.name' AS pin,
    line->>'$.asked.model.name' AS model,
    CAST(line->>'$.asked.card_count' AS BIGINT) AS card_count,
    line->>'$.asked.arm_digest' AS arm_digest,
    line->>'$.asked.pin_digest' AS pin_digest,
    line->>'$.asked.model_digest' AS model_digest,
    line->>'$.asked.cache.key' AS cache_key,
    line->>'$.host.hostname' AS hostname,
    line->>'$.host.kernel' AS kernel,
    CAST(line->>'$.host.state.load[0]' AS DOUBLE) AS load_1min,
    CAST(line->>'$.host.state.memory_available_bytes' AS BIGINT) AS memory_available_bytes,
    line->>'$.host.state.cpu_governor' AS cpu_governor,
    CAST(line->>'$.host.state.cache_free_bytes' AS BIGINT) AS cache_free_bytes,
    line->>'$.tool.version' AS ttx,
    nullif(line->>'$.tool.commit', '') AS ttx_commit,
    nullif(line->>'$.tool.dirty', '') AS ttx_dirty,
    line->>'$.ab.id' AS ab,
    CAST(line->>'$.ab.pair' AS BIGINT) AS ab_pair,
    line->>'$.ab.side' AS ab_side,
    line->>'$.ab.order' AS ab_order,
    CAST(line->>'$.ab.position' AS BIGINT) AS ab_position,
    line
FROM lines
WHERE line->>'$.kind' = 'open';

CREATE VIEW phases AS
SELECT
    line->>'$.run' AS run,
    phase->>'$.name' AS phase,
    CAST(rtrim(nullif(phase->>'$.start', ''), 'Z') AS TIMESTAMP) AS start,
    CAST(phase->>'$.seconds' AS DOUBLE) AS seconds
FROM (
    SELECT line, unnest(CAST(line->'$.phases' AS JSON[])) AS phase
    FROM lines
    WHERE line->>'$.kind' = 'close'
);

CREATE VIEW closed AS
SELECT
    line->>'$.run' AS run,
    line->>'$.id' AS id,
    CAST(rtrim(line->>'$.time', 'Z') AS TIMESTAMP) AS time,
    line->>'$.outcome' AS outcome,
    line->>'$.reason' AS reason,
    line->>'$.text' AS text,
    CAST(line->>'$.exit_code' AS BIGINT) AS exit_code,
    coalesce(list_sum(CAST(line->'$.phases[*].seconds' AS DOUBLE[])), 0) AS seconds,
    line->>'$.observed.cache' AS cache,
    line->>'$.observed.image' AS image,
    line->>'$.identity.verdict' AS identity,
    line->>'$.measured.suite' AS suite,
    CAST(line->>'$.measured.ok' AS BOOLEAN) AS suite_ok,
    CAST(line->>'$.measured.requests' AS BIGINT) AS requests,
    CAST(line->>'$.measured.void' AS BIGINT) AS void,
    line
FROM lines
WHERE line->>'$.kind' = 'close';

CREATE VIEW runs AS
SELECT
    opened.run,
    opened.time,
    closed.time AS closed,
    verb,
    arm,
    simulated,
    coalesce(outcome, CASE WHEN verdicts.alive THEN 'running' ELSE 'aborted' END) AS outcome,
    reason,
    exit_code,
    seconds,
    verdicts.quotable,
    identity,
    opened.suite,
    suite_ok,
    requests,
    void,
    pin,
    model,
    card_count,
    cache,
    hostname,
    ttx,
    ttx_commit,
    ttx_dirty,
    ab,
    ab_pair,
    ab_side
FROM opened
LEFT JOIN closed USING (run)
JOIN verdicts USING (run);

CREATE VIEW cells AS
SELECT
    part.line->>'$.run' AS run,
    opened.arm,
    opened.time,
    part.line->>'$.measured.suite' AS suite,
    cell->>'$.name' AS cell,
    cell->'$.shape' AS shape,
    json_array_length(cell->'$.reasons') = 0 AS valid,
    verdicts.quotable, -- of the run
    CAST(cell->'$.reasons' AS VARCHAR[]) AS reasons,
    value,
    CAST(stat->>'$.n' AS BIGINT) AS n,
    CAST(stat->>'$.median' AS DOUBLE) AS median,
    CAST(stat->>'$.mean' AS DOUBLE) AS mean,
    CAST(stat->>'$.sd' AS DOUBLE) AS sd,
    CAST(stat->>'$.low' AS DOUBLE) AS low,
    CAST(stat->>'$.high' AS DOUBLE) AS high,
    CAST(stat->>'$.percentiles.p90' AS DOUBLE) AS p90,
    CAST(stat->>'$.percentiles.p95' AS DOUBLE) AS p95,
    CAST(stat->>'$.percentiles.p99' AS DOUBLE) AS p99,
    CAST(cell->'$.values'->value AS DOUBLE[]) AS samples
FROM (
    SELECT
        line,
        cell,
        value,
        cell->'$.stats'->value AS stat
    FROM (
        SELECT line, cell, unnest(json_keys(cell->'$.values')) AS value
        FROM (
            SELECT line, unnest(CAST(line->'$.measured.cells' AS JSON[])) AS cell
            FROM lines
            WHERE line->>'$.kind' = 'close'
        )
    )
) AS part
JOIN opened ON opened.run = part.line->>'$.run'
JOIN verdicts ON verdicts.run = part.line->>'$.run';
