"""Scripts of the labelling page: modules that import each other in one direction, without anything from the network."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import tagwise.apps.annotate as package

STATIC = Path(package.__file__).parent / "static"
SCRIPTS = {path.name: path.read_text("utf-8") for path in STATIC.glob("*.js")}


def test_scripts_import_each_other_without_a_cycle() -> None:
    graph = {name: re.findall(r'from "\./(\w+\.js)"', text) for name, text in SCRIPTS.items()}
    assert {one for found in graph.values() for one in found} <= set(graph)
    order = list(TopologicalSorter(graph).static_order())
    assert order[-1] == "main.js"


def test_nothing_is_loaded_from_the_network_or_parsed_as_markup() -> None:
    for path in STATIC.iterdir():
        text = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|innerHTML|insertAdjacentHTML|\beval\(|document\.write", text), (
            path.name
        )
