//! What single nodes of the tree say: assignments, redirections, and what lies below them.

use tree_sitter::Node;

use super::word::{DISAGREE, Scanner};
use super::{Assignment, Direction, Redirect, Simple, UNKNOWN, Word};

/// Reads an assignment. An array, an element or an addition is not known.
pub(super) fn assignment<'t>(scanner: &mut Scanner<'_, 't>, node: Node<'t>) -> Option<Assignment> {
    let name_node = node.child_by_field_name("name")?;
    let name = scanner.text.get(name_node.byte_range())?;
    let name = name.split('[').next().unwrap_or(name).to_owned();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        // No name of a variable, so that the shell takes it for a program.
        scanner.notes.push(DISAGREE);
    }
    let operator = node.child(1).map_or("", |node| node.kind());
    let value_node = node.child_by_field_name("value");
    let whole = name_node.kind() == "variable_name" && operator == "=";
    let value = match value_node {
        Some(value) if value.kind() == "array" => {
            Word { text: UNKNOWN.to_string(), glob: false, several: true }
        }
        Some(value) => scanner.value(value),
        None => Word::default(),
    };
    let value = if whole {
        value
    } else if operator == "+=" && name_node.kind() == "variable_name" {
        match scanner.state.get(&name).map(Vec::as_slice) {
            Some([Some(before)]) => Word::literal(&format!("{before}{}", value.text)),
            _ => Word { text: format!("{UNKNOWN}{}", value.text), glob: false, several: false },
        }
    } else {
        Word { text: UNKNOWN.to_string(), glob: false, several: true }
    };
    Some(Assignment { name, value })
}

/// Reads a redirection; whether it is `&>`, behind which shells disagree.
pub(super) fn redirect<'t>(
    scanner: &mut Scanner<'_, 't>,
    node: Node<'t>,
    simple: &mut Simple,
) -> bool {
    let mut operator = "";
    let mut targets = Vec::new();
    let mut cursor = node.walk();
    for child in node.children(&mut cursor) {
        match child.kind() {
            "file_descriptor" | "comment" => {}
            kind @ ("<" | ">" | ">>" | "&>" | "&>>" | "<&" | ">&" | ">|" | "<&-" | ">&-") => {
                operator = kind;
            }
            _ => targets.push(child),
        }
    }
    let before = scanner.text.get(..node.start_byte()).and_then(|text| text.chars().next_back());
    if before == Some('}') {
        scanner.notes.push("a redirection sets a variable");
    }
    let mut words = Vec::new();
    let mut targets = targets.into_iter();
    if !matches!(operator, "<&-" | ">&-")
        && let Some(target) = targets.next()
    {
        scanner.words(target, &mut words);
        if words.len() != 1 {
            scanner.notes.push("a redirection has not one target");
        }
    }
    let both = operator.starts_with("&>");
    let before = simple.argv.len();
    for more in targets {
        scanner.words(more, &mut simple.argv);
    }
    if both && simple.argv.len() > before {
        scanner.notes.push("words follow `&>`, which shells read in two ways");
    }
    let copies = matches!(operator, "<&" | ">&");
    for target in words {
        if copies {
            let descriptor = target.text.strip_suffix('-').unwrap_or(&target.text);
            if !descriptor.is_empty() && descriptor.chars().all(|c| c.is_ascii_digit()) {
                continue;
            }
            // Shells disagree on what this means, and bash expands the word twice.
            scanner.notes.push("a redirection copies something that is not a descriptor");
        }
        if target.text.starts_with("/dev/tcp/") || target.text.starts_with("/dev/udp/") {
            scanner.notes.push("a redirection opens a network connection");
        }
        let direction =
            if operator.starts_with('<') && !copies { Direction::Read } else { Direction::Write };
        simple.redirects.push(Redirect { direction, target });
    }
    both
}

/// Whether a node is a word of a command.
pub(super) fn is_literal(node: Node<'_>) -> bool {
    (node.is_named()
        && !is_statement(node)
        && !matches!(node.kind(), "file_redirect" | "herestring_redirect" | "heredoc_redirect"))
        || node.kind() == "$"
}

pub(super) fn is_statement(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "list"
            | "pipeline"
            | "command"
            | "redirected_statement"
            | "variable_assignment"
            | "variable_assignments"
            | "declaration_command"
            | "unset_command"
            | "test_command"
            | "negated_command"
            | "subshell"
            | "compound_statement"
            | "do_group"
            | "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "function_definition"
            | "ERROR"
    )
}

/// The variables set anywhere below a node.
pub(super) fn assigned(text: &str, node: Node<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        let slice = |node: Node<'_>| text.get(node.byte_range()).unwrap_or_default().to_owned();
        match node.kind() {
            "variable_assignment" | "for_statement" => {
                let name = node
                    .child_by_field_name("name")
                    .or_else(|| node.child_by_field_name("variable"));
                names.extend(name.map(slice));
            }
            "command" => {
                let program = node.child_by_field_name("name").map(slice).unwrap_or_default();
                if matches!(
                    program.as_str(),
                    "read" | "mapfile" | "readarray" | "printf" | "let" | "getopts"
                ) {
                    let mut cursor = node.walk();
                    names.extend(node.children_by_field_name("argument", &mut cursor).map(slice));
                }
            }
            // Arithmetic sets what it names.
            "variable_name" => names.push(slice(node)),
            _ => {}
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor).filter(|child| {
            // A variable that is only used is no variable that is set.
            !matches!(child.kind(), "simple_expansion" | "expansion")
        }));
    }
    names
}

/// Whether something below a node changes the directory.
pub(super) fn moves(text: &str, node: Node<'_>) -> bool {
    let mut waiting = vec![node];
    while let Some(node) = waiting.pop() {
        if node.kind() == "command_name" {
            let name = text.get(node.byte_range()).unwrap_or_default();
            if name.contains("cd")
                || name.contains("pushd")
                || name.contains("popd")
                || name.contains('$')
            {
                return true;
            }
        }
        let mut cursor = node.walk();
        waiting.extend(node.children(&mut cursor));
    }
    false
}
