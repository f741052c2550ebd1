"""Possible mutants of a Rust file, found with the grammar of tree-sitter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .mutant import SWAPS, Mutant

#: Nodes that cannot contain a switch: they are evaluated at compile time or are not code.
EXCLUDED = {
    "attribute_item",
    "inner_attribute_item",
    "const_item",
    "static_item",
    "const_block",
    "macro_definition",
    "type_arguments",
    "type_parameters",
    "array_type",
    "use_declaration",
    "token_tree",
    "match_pattern",
    "tuple_struct_pattern",
    "tuple_pattern",
    "range_pattern",
    "or_pattern",
    "enum_item",
    "struct_item",
}
SILENT = re.compile(r"^(prefetch|simd::prefetch|crate::simd::prefetch|debug_assert)")


def parser() -> Any:
    """Return a parser of Rust. Its packages are in the extra `mutants`."""
    import tree_sitter
    import tree_sitter_rust

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


def is_test(node: Any) -> bool:
    """Return whether an item is a test or is compiled only for tests."""
    before = node.prev_named_sibling
    while before is not None and before.type in ("attribute_item", "line_comment"):
        if re.search(rb"cfg\(test\)|\[test\]", before.text):
            return True
        before = before.prev_named_sibling
    return False


def is_constant(node: Any) -> bool:
    """Return whether a function can run at compile time."""
    return any(child.type == "function_modifiers" and b"const" in child.text for child in node.children)


def rust_sites(name: str, source: bytes) -> list[Mutant]:
    """Return all mutants of a Rust file, some of which may not compile."""

    def mutant(node: Any, kind: str, text: str) -> Mutant:
        begin, end = node.start_byte, node.end_byte
        return Mutant(name, begin, end, kind, text, node.start_point[0] + 1, source[begin:end].decode())

    def text(begin: int, end: int) -> str:
        return source[begin:end].decode()

    def local(node: Any) -> Iterator[Mutant]:
        begin, end = node.start_byte, node.end_byte
        if node.type in ("binary_expression", "compound_assignment_expr"):
            op = node.child_by_field_name("operator")
            old = op.text.decode()
            if old in SWAPS and old != "//":
                new = text(begin, op.start_byte) + SWAPS[old] + text(op.end_byte, end)
                yield mutant(node, f"{old} to {SWAPS[old]}", new)
        elif node.type == "unary_expression" and node.text[:1] in (b"!", b"-"):
            yield mutant(node, "operator dropped", text(begin + 1, end))
        elif node.type == "boolean_literal":
            yield mutant(node, "flag negated", "false" if node.text == b"true" else "true")
        elif node.type == "integer_literal" and re.fullmatch(rb"[0-9_]+", node.text):
            yield mutant(node, "number changed", str(int(node.text.replace(b"_", b"")) + 1))
        elif node.type == "float_literal" and re.fullmatch(rb"[0-9_.]+(e-?[0-9]+)?", node.text):
            value = float(node.text.replace(b"_", b""))
            yield mutant(node, "number changed", repr(value * 2.0 if value else 1.0))
        elif node.type in ("if_expression", "while_expression"):
            test = node.child_by_field_name("condition")
            if node.type == "if_expression" and "let" not in test.type:
                yield mutant(test, "condition negated", f"!({test.text.decode()})")
        elif node.type == "expression_statement" and node.text.endswith(b";"):
            kinds = ("call_expression", "compound_assignment_expr", "assignment_expression")
            if node.named_children[0].type in kinds and not SILENT.match(node.text.decode()):
                yield mutant(node, "statement removed", "")
        elif node.type == "call_expression":
            function = node.child_by_field_name("function")
            field = function.child_by_field_name("field") if function.type == "field_expression" else None
            if field is not None and field.text in (b"min", b"max"):
                other = "max" if field.text == b"min" else "min"
                new = text(begin, field.start_byte) + other + text(field.end_byte, end)
                yield mutant(node, f"{field.text.decode()} to {other}", new)

    def walk(node: Any) -> Iterator[Mutant]:
        if node.type in EXCLUDED or node.type.endswith("_type"):
            return
        if node.type in ("function_item", "mod_item", "impl_item") and (is_test(node) or is_constant(node)):
            return
        yield from local(node)
        for child in node.named_children:
            if node.type == "array_expression" and child == node.child_by_field_name("length"):
                continue
            yield from walk(child)

    return list(walk(parser().parse(source).root_node))


def switched(source: bytes, mutants: dict[int, Mutant]) -> bytes:
    """Return the file with these mutants, each behind its switch."""
    out = source
    for number, m in sorted(mutants.items(), key=lambda item: -item[1].begin):
        old, on = source[m.begin : m.end].decode(), f"crate::mutants::on({number})"
        new = f"(if {on} {{ {m.text} }} else {{ {old} }})" if m.text else f"if !{on} {{ {old} }}"
        out = out[: m.begin] + new.encode() + out[m.end :]
    return out


#: Switch of the core: the active mutant, and the reached ones, which Python reads through the C interface.
SWITCH = """//! The switch of the mutants in this copy.
use std::sync::atomic::{AtomicU32, AtomicU8, Ordering::Relaxed};

const N: usize = COUNT;
const UNREAD: u32 = u32::MAX;
static ACTIVE: AtomicU32 = AtomicU32::new(UNREAD);
static HITS: [AtomicU8; N] = [const { AtomicU8::new(0) }; N];

#[cold]
fn read() -> u32 {
    let chosen = std::env::var("TAGWISE_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(UNREAD - 1);
    ACTIVE.store(chosen, Relaxed);
    chosen
}

pub fn on(number: u32) -> bool {
    let hit = &HITS[number as usize];
    if hit.load(Relaxed) == 0 {
        hit.store(1, Relaxed);
    }
    let active = ACTIVE.load(Relaxed);
    number == if active == UNREAD { read() } else { active }
}

#[no_mangle]
pub extern "C" fn tagwise_mutants() -> *mut u8 {
    HITS.as_ptr() as *mut u8
}
"""
