from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ttstack.run.identify
from ttstack.records.reference import reference_text
from ttstack.records.schema import schema_document

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "record.md"


def _names(node: Any) -> set[str]:  # noqa: ANN401 - any part of a document
    if isinstance(node, list):
        return {name for entry in node for name in _names(entry)}
    if not isinstance(node, dict):
        return set()
    return set(node.get("properties", ())) | {name for entry in node.values() for name in _names(entry)}


def test_the_page_is_fresh() -> None:
    stale = "refresh it, in python/: python -m ttstack.records.reference > ../docs/reference/record.md"
    assert PAGE.read_text(encoding="utf-8") == reference_text(), stale


def test_every_field_of_the_schema_has_a_row() -> None:
    rows = re.findall(r"^\| `([^`]*)` \| .+ \| .+ \|$", reference_text(), flags=re.MULTILINE)
    assert _names(schema_document()) <= {row.rpartition(".")[2] for row in rows}


def test_every_question_of_the_identity_is_explained() -> None:
    source = Path(str(ttstack.run.identify.__file__)).read_text(encoding="utf-8")
    asked = set(re.findall(r'(?:IdentityCheck|_equal)\(\s*"(\w+)"|name(?:, port)? = "(\w+)"', source))
    names = {name for pair in asked for name in pair if name}
    section = reference_text().split("## What is asked for the identity")[1].split("\n## ")[0]
    explained = set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
    assert names == explained


def test_the_reasons_are_those_of_the_rule() -> None:
    section = reference_text().split("## When numbers may be quoted")[1].split("\n## ")[0]
    reasons = re.findall(r"^- (.*)$", section, flags=re.MULTILINE)
    assert len(reasons) == 12
    assert "the outcome is ok" not in reasons
    assert "suite SUITE: 2 of 9 requests are void" in reasons
