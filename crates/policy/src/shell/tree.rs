//! The grammar: text to tree, within a budget, every byte accounted for.

use std::cell::RefCell;
use std::ops::ControlFlow;

use tree_sitter::{Node, ParseOptions, Parser, Tree};

/// How often the parser may report progress before it is stopped. It counts its own steps, not time.
const MAX_PROGRESS: usize = 4_000;
/// The most nodes of a tree that is walked.
const MAX_NODES: usize = 60_000;

thread_local! {
    static PARSER: RefCell<Option<Parser>> = const { RefCell::new(None) };
}

/// Reads a text; `None` if that takes too many steps.
pub(super) fn parse(text: &str) -> Option<Tree> {
    PARSER.with_borrow_mut(|parser| {
        if parser.is_none() {
            let mut fresh = Parser::new();
            fresh.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
            *parser = Some(fresh);
        }
        let parser = parser.as_mut()?;
        let bytes = text.as_bytes();
        let mut steps = 0_usize;
        let mut progress = |_: &tree_sitter::ParseState| {
            steps += 1;
            if steps > MAX_PROGRESS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(
            &mut |at, _| bytes.get(at..).unwrap_or_default(),
            None,
            Some(options),
        );
        if tree.is_none() {
            parser.reset();
        }
        tree
    })
}

/// Why a tree does not account for its whole text, if so.
pub(super) fn unaccounted(tree: &Tree, text: &str) -> Option<&'static str> {
    let mut cursor = tree.walk();
    let mut nodes = 0_usize;
    let root = tree.root_node();
    if !is_blank(text.get(..root.start_byte()).unwrap_or("?"), true)
        || !is_blank(text.get(root.end_byte()..).unwrap_or("?"), true)
    {
        return Some(LOST);
    }
    loop {
        nodes += 1;
        if nodes > MAX_NODES {
            return Some("it has too many parts to read");
        }
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            return Some("a part of it is not shell that is known here");
        }
        if node.child_count() > 0 && !holds_text(node) && !is_covered(node, text) {
            return Some(LOST);
        }
        if node.kind() == "comment" && !is_comment(node, text) {
            return Some(LOST);
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return None;
            }
        }
    }
}

const LOST: &str = "a part of it is not accounted for";

/// Whether what lies between the children of a node is its own text, which is read character by character.
fn holds_text(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "string"
            | "heredoc_body"
            | "expansion"
            | "translated_string"
            | "regex"
            | "heredoc_redirect"
    )
}

/// Whether the children of a node cover it but for white space.
fn is_covered(node: Node<'_>, text: &str) -> bool {
    // A line ends a command, so that none of its words lies on the next.
    let lines = !matches!(
        node.kind(),
        "command"
            | "declaration_command"
            | "unset_command"
            | "file_redirect"
            | "concatenation"
            | "variable_assignment"
    );
    let mut end = node.start_byte();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        let gap = text.get(end..child.start_byte().max(end)).unwrap_or("?");
        if !is_blank(gap, lines) && !is_dash(node, gap) {
            return false;
        }
        end = child.end_byte().max(end);
    }
    is_blank(text.get(end..node.end_byte().max(end)).unwrap_or("?"), lines)
}

/// The grammar drops a lone `-` before a here-document; the walk puts it back.
pub(super) fn is_dash(node: Node<'_>, gap: &str) -> bool {
    node.kind() == "redirected_statement"
        && gap.starts_with(' ')
        && gap.trim_matches(' ') == "-"
        && gap.ends_with(' ')
}

fn is_blank(gap: &str, lines: bool) -> bool {
    let mut chars = gap.chars();
    while let Some(c) = chars.next() {
        let blank = match c {
            ' ' | '\t' => true,
            '\n' => lines,
            '\\' => chars.next() == Some('\n'),
            _ => false,
        };
        if !blank {
            return false;
        }
    }
    true
}

/// A `#` starts a comment only where a word could start.
fn is_comment(node: Node<'_>, text: &str) -> bool {
    let before = text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
    let inside = text.get(node.byte_range()).unwrap_or_default();
    inside.starts_with('#')
        && !inside.contains('\n')
        && before.is_none_or(|c| matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')'))
}
