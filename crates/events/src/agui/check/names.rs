//! Fields that are there under another name: one finding that says so, not one for each of the names.

use std::collections::HashMap;

use super::{MISSING, UNKNOWN_FIELD, squeezed};
use crate::agui::event::Type;
use crate::check::shape::quote;
use crate::finding::{Finding, Rule};

/// What other protocols and old documents call a field: the type it is in, its name, the other name.
const ALIASES: [(Type, &str, &str); 6] = [
    (Type::StateSnapshot, "snapshot", "state"),
    (Type::StateDelta, "delta", "patch"),
    (Type::ActivityDelta, "patch", "delta"),
    (Type::RunError, "message", "error"),
    (Type::SubagentError, "message", "error"),
    (Type::ToolCallArgs, "delta", "args"),
];

/// Makes one finding out of a field that is missing and the foreign one beside it that is meant, among the findings
/// from `before` on. A foreign field that is a known one in other letters is said to be that.
pub(super) fn reconcile(kind: Type, before: usize, findings: &mut Vec<Finding>) {
    let is = |finding: &Finding, rule: &Rule| finding.rule.code == rule.code;
    if !findings.iter().skip(before).any(|finding| is(finding, &UNKNOWN_FIELD)) {
        return;
    }
    let new = findings.split_off(before.min(findings.len()));
    let (foreign, mut others): (Vec<_>, Vec<_>) =
        new.into_iter().partition(|finding| is(finding, &UNKNOWN_FIELD));
    let mut missing: HashMap<(String, String), usize> = HashMap::new();
    for (index, finding) in others.iter().enumerate().filter(|(_, other)| is(other, &MISSING)) {
        let (container, name) = split(&finding.pointer);
        missing.insert((container.to_owned(), squeezed(name)), index);
        let alias = ALIASES.iter().find(|(of, field, _)| *of == kind && *field == name);
        if let (Some((_, _, alias)), "") = (alias, container) {
            missing.insert((String::new(), (*alias).to_owned()), index);
        }
    }
    let known: HashMap<String, &str> =
        kind.shape().fields().map(|field| (squeezed(field.name), field.name)).collect();
    for mut foreign in foreign {
        let (container, name) = split(&foreign.pointer);
        let word = squeezed(name);
        let meant = known.get(&word).filter(|_| container.is_empty());
        let written = |field: &str| format!("{} is written {field} here", quote(name));
        let lacks = missing.remove(&(container.to_owned(), word));
        if let Some(lacks) = lacks.and_then(|index| others.get_mut(index)) {
            let (_, field) = split(&lacks.pointer);
            lacks.message = written(field);
            lacks.pointer = foreign.pointer;
            continue;
        }
        if let Some(field) = meant {
            foreign.message = written(field);
        }
        findings.push(foreign);
    }
    findings.append(&mut others);
}

/// The object that a pointer leads into, and the name in it.
fn split(pointer: &str) -> (&str, &str) {
    pointer.rsplit_once('/').unwrap_or(("", pointer))
}
