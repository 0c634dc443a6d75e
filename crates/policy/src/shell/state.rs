//! What is known while a text is read: variables, directories, functions.
//!
//! Everything is a set of possible values. Where two ways through the text meet, the sets are joined, so that what is
//! known is never less than what can happen. A value that is not known is [`None`].

use std::collections::BTreeMap;
use std::rc::Rc;

/// The most values of one variable, and the most directories, that are kept apart.
pub(super) const MAX_VALUES: usize = 8;

/// Every value a variable may have; `None` is one that is not known.
pub(super) type Values = Vec<Option<Rc<str>>>;

/// What a name stands for that is not a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) body: Rc<str>,
    /// Whether it is an alias: the words of the call follow the body.
    pub(super) alias: bool,
    /// Whether the name may still mean the program.
    pub(super) maybe: bool,
    pub(super) called: bool,
}

/// What is known at one place of the text.
#[derive(Debug, Clone)]
pub(super) struct ShellState {
    variables: Rc<BTreeMap<String, Values>>,
    pub(super) functions: Rc<BTreeMap<String, Function>>,
    /// The directories the text may be in, as paths from where it started.
    pub(super) directories: Rc<Vec<String>>,
    /// `$1` and so on, where they are known.
    pub(super) positional: Option<Rc<Vec<Option<Rc<str>>>>>,
    /// Whether words may be split in an unusual way.
    pub(super) strange_splitting: bool,
}

impl ShellState {
    pub(super) fn new() -> Self {
        Self {
            variables: Rc::default(),
            functions: Rc::default(),
            directories: Rc::new(vec![String::new()]),
            positional: None,
            strange_splitting: false,
        }
    }

    /// What the text itself set a variable to.
    pub(super) fn get(&self, name: &str) -> Option<&Values> {
        self.variables.get(name)
    }

    pub(super) fn set(&mut self, name: &str, values: Values) {
        if name == "IFS" {
            self.strange_splitting = true;
        }
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), values);
    }

    /// Forgets what a variable holds.
    pub(super) fn forget(&mut self, name: &str) {
        self.set(name, vec![None]);
    }

    /// Forgets every variable the text has set.
    pub(super) fn forget_all(&mut self) {
        for values in Rc::make_mut(&mut self.variables).values_mut() {
            *values = vec![None];
        }
        self.strange_splitting = true;
    }

    /// Goes to a directory; if that can fail, it may still be where it was.
    pub(super) fn go(&mut self, target: &str, may_fail: bool) -> bool {
        let mut reached: Vec<String> =
            self.directories.iter().map(|from| descend(from, target)).collect();
        if may_fail {
            reached.extend(self.directories.iter().cloned());
        }
        reached.sort();
        reached.dedup();
        let fits = reached.len() <= MAX_VALUES;
        reached.truncate(MAX_VALUES);
        self.directories = Rc::new(reached);
        fits
    }

    pub(super) fn define(&mut self, name: &str, function: Function) {
        Rc::make_mut(&mut self.functions).insert(name.to_owned(), function);
    }

    /// Joins what another way through the text may have led to. `false` if there are too many values to keep apart.
    pub(super) fn join(&mut self, other: &Self) -> bool {
        let mut fits = true;
        if !Rc::ptr_eq(&self.variables, &other.variables) {
            let mine = Rc::make_mut(&mut self.variables);
            for (name, values) in mine.iter_mut() {
                let unset = vec![None];
                for value in other.variables.get(name).unwrap_or(&unset) {
                    if !values.contains(value) {
                        values.push(value.clone());
                    }
                }
                if values.len() > MAX_VALUES {
                    fits = false;
                    *values = vec![None];
                }
            }
            for (name, values) in other.variables.iter() {
                if !mine.contains_key(name) {
                    let mut values = values.clone();
                    if !values.contains(&None) {
                        values.push(None);
                    }
                    mine.insert(name.clone(), values);
                }
            }
        }
        if !Rc::ptr_eq(&self.functions, &other.functions) {
            let mine = Rc::make_mut(&mut self.functions);
            for (name, function) in other.functions.iter() {
                match mine.get_mut(name) {
                    Some(known) if known.body == function.body => {
                        known.maybe |= function.maybe;
                        known.called |= function.called;
                    }
                    _ => {
                        mine.insert(name.clone(), Function { maybe: true, ..function.clone() });
                    }
                }
            }
        }
        if !Rc::ptr_eq(&self.directories, &other.directories) {
            let mine = Rc::make_mut(&mut self.directories);
            for directory in other.directories.iter() {
                if !mine.contains(directory) {
                    mine.push(directory.clone());
                }
            }
            fits &= mine.len() <= MAX_VALUES;
            mine.truncate(MAX_VALUES);
        }
        self.strange_splitting |= other.strange_splitting;
        if self.positional != other.positional {
            self.positional = None;
        }
        fits
    }
}

/// A path seen from another.
pub(super) fn descend(from: &str, target: &str) -> String {
    if from.is_empty() || target.starts_with(['/', '~']) {
        return target.to_owned();
    }
    format!("{from}/{target}")
}
