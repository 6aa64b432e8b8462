"""docs/reference/arm.md, made from the tables that the validation uses.

``python -m ttstack.arm.reference > ../docs/reference/arm.md`` refreshes it.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from ttstack.arm.catalogue_fields import MODEL, PIN
from ttstack.arm.check import DERIVED_ENV, SECRET_ENV
from ttstack.arm.fields import ARM, Field
from ttstack.arm.flags import DOC, KINDS, REFUSED, SIM, TT
from ttstack.arm.mesh import DEFAULT, MESHES
from ttstack.arm.vllm_flags import VLLM
from ttstack.markdown import block, code, paragraph, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = """\
# Arms, pins and models, key by key

Made by `python -m ttstack.arm.reference` from the tables that the validation uses. `ttx arm check` holds files against
them, and `arms/schema/arm.json` gives the same to editors.

All three are TOML. Unknown keys are refused, and all faults of a file are reported at once, each with its line. An arm
that `extends` another may leave out whatever that one says; "required" is meant of the result."""

_TOGETHER = """\
- `cards.mesh` has as many cards as `cards.count`, and as many `ids` are named, each once.
- `expect.max_model_len` is what `engine.args` gives as `max-model-len`, when both are there.
- A banner is not empty, and what follows `re:` is a regular expression.
- A name stands in only one of `env`, `env.weights` and `engine.secrets`.
- A container needs a pin with an `image`. Overlays need a container; their sources are folders that exist, their
  targets lie below the pin's `home`, each once.
- Numbers have at most six significant digits, as more would not survive a command line. No value holds a control
  character; a path holds neither a comma nor a double quote."""

_ARM_NOTE = "A file `arms/NAME.toml`; NAME is the arm's: letters, digits, dots, dashes, at most 60."
_PIN_NOTE = "A file `pins/NAME.toml`."
_MODEL_NOTE = (
    "All models are in `arms/models.toml`: `schema = 1`, then one table for each. A name with a dot is quoted."
)
_EDITOR_NOTE = "An editor completes and checks it when its first line is `#:schema ./schema/arm.json`."


def reference_text() -> str:
    """Return the page."""
    lines = [_HEAD, "", "## An arm", "", _ARM_NOTE, _EDITOR_NOTE, "", *_tables(ARM, "")]
    lines += ["### What must fit together", "", _TOGETHER, "", *_flags(), *_options(), *_meshes(), *_variables()]
    lines += ["## A pin", "", _PIN_NOTE, "", *_tables(PIN, ""), *_kinds()]
    lines += ["## A model", "", _MODEL_NOTE, "", *_table(MODEL, '["qwen3.6-27b"]')]
    return "\n".join(lines).rstrip("\n") + "\n"


def _tables(fields: Mapping[str, Field], header: str) -> Iterator[str]:
    """Describe a file: its own keys, then those of each of its tables."""
    yield from _table(fields, header)
    for name, field in fields.items():
        if field.fields:
            header = f"[[{name}]]" if field.kind == "tables" else f"[{name}]"
            yield from (f"### {code(header)}", "")
            if field.kind == "env":
                yield from paragraph(f'NAME = "text" for each variable: {field.doc}. These keys are something else:')
                yield ""
            yield from _table(field.fields, header, field.example)


def _table(fields: Mapping[str, Field], header: str, line: str = "") -> Iterator[str]:
    """Describe the keys of one table, and show all of them."""
    rows = [(code(name), _value(field), _default(field), field.doc) for name, field in fields.items()]
    yield from table(("key", "value", "when absent", "meaning"), rows)
    shown = [f"{name} = {field.example}" for name, field in fields.items() if field.example and not field.fields]
    yield from ("", *block("toml", [text for text in (header, line, *shown) if text]), "")


def _value(field: Field) -> str:
    if field.choices:
        return ", ".join(map(code, field.choices))
    if field.kind in {"texts", "path"} and field.expects:
        return f"a list: {field.expects}"
    if field.fields and field.kind != "env":
        return f"{'tables' if field.kind == 'tables' else 'a table'}, see below"
    return field.expected


def _default(field: Field) -> str:
    if field.required:
        return "required"
    if field.otherwise:
        return field.otherwise
    return "nothing" if field.default in {None, ""} else code(json.dumps(field.default))


def _flags() -> Iterator[str]:
    yield from ("### `engine.args`", "")
    yield from paragraph(
        "The flags of `vllm serve` (vLLM 0.25.1) and of the simulated engine, by the value that each takes; a pin can "
        "add some (`extra-flags`). An absent flag is not given, so the engine's own default holds. Flags of `asgi` and "
        "`demo` engines are not checked."
    )
    yield ""
    for kind, meaning in KINDS.items():
        names = ", ".join(code(name) for name, of in sorted((VLLM | SIM).items()) if of == kind)
        yield from paragraph(f"{meaning}: {names}", bullet=True)
    yield ""
    yield from table(("flag", "meaning"), [(code(name), meaning) for name, meaning in DOC.items()])
    yield from ("", "These may not be written:", "")
    yield from table(("flag", "instead"), [(code(name), instead) for name, instead in REFUSED.items()])
    yield ""


def _options() -> Iterator[str]:
    yield from ("### `engine.tt`", "")
    yield from paragraph(
        "What vllm-tt-plugin reads. It ignores a name that it does not know, without a word, so unknown ones are "
        "refused here."
    )
    yield ""
    rows = [
        (code(name), ", ".join(map(code, option.choices)) or KINDS[option.kind], option.doc)
        for name, option in TT.items()
    ]
    yield from table(("option", "value", "meaning"), rows)
    yield ""


def _meshes() -> Iterator[str]:
    own = {mesh: f"{count}, and the mesh of so many cards when none is named" for count, mesh in DEFAULT.items()}
    yield from (
        "### `cards.mesh`",
        "",
        "A name that the plugin knows, or a shape in rows and columns such as `(1,2)`.",
        "",
    )
    yield from table(("mesh", "cards"), [(code(mesh), own.get(mesh, str(chips))) for mesh, chips in MESHES.items()])
    yield ""


def _variables() -> Iterator[str]:
    yield from ("### Variables that no arm or model may set", "")
    named = "its value may stand in no file: name it in engine.secrets"
    rows = [*DERIVED_ENV.items(), *((name, named) for name in sorted(SECRET_ENV))]
    yield from table(("variable", "why"), [(code(name), why) for name, why in rows])
    yield ""


def _kinds() -> Iterator[str]:
    yield from ("### `extra-flags`", "", "The kinds of flags:", "")
    yield from table(("kind", "an arm writes"), [(code(name), meaning) for name, meaning in KINDS.items()])
    yield ""


if __name__ == "__main__":
    sys.stdout.write(reference_text())
