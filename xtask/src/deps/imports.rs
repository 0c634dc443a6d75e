//! What the modules of a crate import from one another, read from its source.
//!
//! Tokens are looked at, not text: a path in a comment or a string is none. Code that only tests see is left out. A path
//! counts in a `use` and anywhere else, in macros too, if it starts with `crate`, `self`, `super` or a module below.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The names of a module from the crate's root; empty for the root itself.
pub(super) type ModulePath = Vec<String>;

/// One import: who, whom, and where that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) from: ModulePath,
    /// The path from the root, with the name of the imported item.
    pub(super) to: Vec<String>,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

/// The modules of a crate and their imports.
#[derive(Debug, Default)]
pub(super) struct SourceTree {
    pub(super) modules: BTreeSet<ModulePath>,
    pub(super) imports: Vec<Import>,
}

/// A module in a file of its own.
struct ModuleFile {
    module: ModulePath,
    file: PathBuf,
    /// Where the modules below it are.
    folder: PathBuf,
}

impl SourceTree {
    /// Reads a crate from its root file; `text_of` gives the text of a file, or `None` where there is none.
    pub(super) fn read(
        root: &Path,
        text_of: &dyn Fn(&Path) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let mut reader = ImportReader::default();
        let folder = root.parent().unwrap_or(root).to_owned();
        reader.waiting.push(ModuleFile { module: Vec::new(), file: root.to_owned(), folder });
        while let Some(ModuleFile { module, file, folder }) = reader.waiting.pop() {
            let text = text_of(&file).ok_or_else(|| anyhow!("{}: no such file", file.display()))?;
            let tokens: TokenStream =
                text.parse().map_err(|error| anyhow!("{}: {error}", file.display()))?;
            let tokens: Vec<TokenTree> = tokens.into_iter().collect();
            reader.module(&ModuleScope { module: &module, file: &file, folder: &folder }, &tokens);
        }
        let mut tree = reader.tree;
        // A name that the root imports from a module is that module's.
        for import in &mut tree.imports {
            let Some((name, rest)) = import.to.split_first() else { continue };
            if !tree.modules.contains(std::slice::from_ref(name))
                && let Some(original) = reader.root_names.get(name)
            {
                import.to = original.iter().chain(rest).cloned().collect();
            }
        }
        Ok(tree)
    }
}

/// Where tokens stand.
#[derive(Clone, Copy)]
struct ModuleScope<'s> {
    module: &'s [String],
    file: &'s Path,
    folder: &'s Path,
}

#[derive(Default)]
struct ImportReader {
    tree: SourceTree,
    waiting: Vec<ModuleFile>,
    /// What the root imports under its own names.
    root_names: BTreeMap<String, Vec<String>>,
}

impl ImportReader {
    fn module(&mut self, scope: &ModuleScope<'_>, tokens: &[TokenTree]) {
        if !scope.module.is_empty() {
            self.tree.modules.insert(scope.module.to_vec());
        }
        let below: BTreeSet<String> = items(tokens).filter_map(module_name).collect();
        self.scan(scope, &below, tokens);
    }

    fn scan(&mut self, scope: &ModuleScope<'_>, below: &BTreeSet<String>, tokens: &[TokenTree]) {
        let mut file: Option<String> = None;
        let mut at = 0;
        while let Some(rest) = tokens.get(at..).filter(|rest| !rest.is_empty()) {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            at += match rest {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), ..]
                    if hash.as_char() == '#' =>
                {
                    if is_for_tests(attribute.stream()) {
                        2 + item_length(rest.get(2..).unwrap_or_default())
                    } else {
                        file = path_attribute(attribute.stream()).or(file);
                        2
                    }
                }
                // Who may see an item is no import: `pub(in crate::policy)`.
                [TokenTree::Ident(word), TokenTree::Group(who), ..]
                    if word == "pub" && who.delimiter() == Delimiter::Parenthesis =>
                {
                    2
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end), ..]
                    if word == "mod" && end.as_char() == ';' =>
                {
                    self.wait_for(scope, &name.to_string(), file.take());
                    3
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Group(body), ..]
                    if word == "mod" && body.delimiter() == Delimiter::Brace =>
                {
                    let module = joined(scope.module, &[name.to_string()]);
                    let folder = scope.folder.join(name.to_string());
                    let inside = ModuleScope { module: &module, folder: &folder, ..*scope };
                    self.module(&inside, &body.stream().into_iter().collect::<Vec<_>>());
                    3
                }
                // `use<'a>` says what a return type captures.
                [TokenTree::Ident(word), next, ..]
                    if word == "use" && !is_punct(Some(next), '<') =>
                {
                    let end = rest.iter().position(|token| is_punct(Some(token), ';'));
                    let end = end.unwrap_or(rest.len());
                    let leaves = use_tree(rest.get(1..end).unwrap_or_default());
                    let is_public = before.is_some_and(|word| is_ident(word, "pub"));
                    self.take_use(scope, below, leaves, is_public);
                    end
                }
                [TokenTree::Ident(_), ..] if !follows_path(tokens, at) => {
                    let (path, length) = plain_path(rest);
                    let line = rest.first().map_or(0, line_of);
                    if let Some(to) = resolve(scope.module, below, &path).filter(|_| path.len() > 1)
                    {
                        self.import(scope, to, line);
                    }
                    length
                }
                [TokenTree::Group(group), ..] => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.scan(scope, below, &inner);
                    1
                }
                _ => 1,
            };
        }
    }

    fn wait_for(&mut self, scope: &ModuleScope<'_>, name: &str, path: Option<String>) {
        let here = scope.file.parent().unwrap_or(scope.file);
        let (file, folder) = match path {
            Some(path) => (here.join(path), here.to_owned()),
            None => (scope.folder.join(format!("{name}.rs")), scope.folder.join(name)),
        };
        let module = joined(scope.module, &[name.to_owned()]);
        self.waiting.push(ModuleFile { module, file, folder });
    }

    fn take_use(
        &mut self,
        scope: &ModuleScope<'_>,
        below: &BTreeSet<String>,
        leaves: Vec<UseLeaf>,
        is_public: bool,
    ) {
        for UseLeaf { path, name, line } in leaves {
            let Some(to) = resolve(scope.module, below, &path) else { continue };
            if scope.module.is_empty() {
                self.root_names.insert(name, to.clone());
                // What the crate shows to others is no use the root makes of it.
                if is_public {
                    continue;
                }
            }
            self.import(scope, to, line);
        }
    }

    fn import(&mut self, scope: &ModuleScope<'_>, to: Vec<String>, line: usize) {
        let (from, file) = (scope.module.to_vec(), scope.file.to_owned());
        self.tree.imports.push(Import { from, to, file, line });
    }
}

/// One name that a `use` brings in.
struct UseLeaf {
    path: Vec<String>,
    /// What it is called from there on.
    name: String,
    line: usize,
}

/// Every name in the tree of a `use`: `a::{b, c::d as e}` has two.
fn use_tree(tokens: &[TokenTree]) -> Vec<UseLeaf> {
    let mut leaves = Vec::new();
    for part in tokens.split(|token| is_punct(Some(token), ',')) {
        let mut path = Vec::new();
        let mut renamed = None;
        let mut words = part.iter();
        while let Some(word) = words.next() {
            match word {
                TokenTree::Ident(word) if word == "as" => {
                    renamed = words.next().map(ToString::to_string);
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for leaf in use_tree(&inner) {
                        let below = if leaf.path == ["self"] { &[] } else { leaf.path.as_slice() };
                        leaves.push(UseLeaf { path: joined(&path, below), ..leaf });
                    }
                    path.clear();
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        if let (Some(last), Some(first)) = (path.last(), part.first()) {
            let (name, line) = (renamed.unwrap_or_else(|| last.clone()), line_of(first));
            leaves.push(UseLeaf { path, name, line });
        }
    }
    leaves
}

/// A path as far as it is plain, and how many tokens it is long: `a::b::<C>` is `a::b`.
fn plain_path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut path = Vec::new();
    let mut at = 0;
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    (path, at.max(1))
}

/// A path from the root of the crate; `None` where it does not lead into the crate.
fn resolve(module: &[String], below: &BTreeSet<String>, path: &[String]) -> Option<Vec<String>> {
    let (first, mut rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => return Some(rest.to_vec()),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        name if below.contains(name) => return Some(joined(module, path)),
        _ => return None,
    };
    while let Some((_, others)) = rest.split_first().filter(|(first, _)| *first == "super") {
        base.pop();
        rest = others;
    }
    base.extend_from_slice(rest);
    Some(base)
}

/// The items of a module that are there outside of tests, each from its keyword on.
fn items(tokens: &[TokenTree]) -> impl Iterator<Item = &[TokenTree]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = tokens.get(at..).filter(|rest| !rest.is_empty())?;
            match rest {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), ..]
                    if hash.as_char() == '#' =>
                {
                    at += 2;
                    if is_for_tests(attribute.stream()) {
                        at += item_length(rest.get(2..).unwrap_or_default());
                    }
                }
                _ => {
                    at += 1;
                    return Some(rest);
                }
            }
        }
    })
}

fn module_name(item: &[TokenTree]) -> Option<String> {
    match item {
        [TokenTree::Ident(word), TokenTree::Ident(name), ..] if word == "mod" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// How many tokens an item, a field or a statement is long: up to its body, its semicolon or its comma.
fn item_length(tokens: &[TokenTree]) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return at + 1,
            TokenTree::Punct(sign) => match sign.as_char() {
                ';' => return at + 1,
                ',' if depth == 0 => return at + 1,
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
    tokens.len()
}

/// Whether an attribute leaves its item to tests: `cfg(test)`, or `cfg(all(test, …))`.
fn is_for_tests(attribute: TokenStream) -> bool {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(word), TokenTree::Group(condition)] if word == "cfg" || word == "all" => {
            let inner: Vec<TokenTree> = condition.stream().into_iter().collect();
            inner.split(|token| is_punct(Some(token), ',')).any(|part| match part {
                [TokenTree::Ident(word)] => word == "test",
                part => is_for_tests(part.iter().cloned().collect()),
            })
        }
        _ => false,
    }
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attribute: TokenStream) -> Option<String> {
    let tokens: Vec<TokenTree> = attribute.into_iter().collect();
    match tokens.as_slice() {
        [TokenTree::Ident(word), _, TokenTree::Literal(path)] if word == "path" => {
            Some(path.to_string().trim_matches('"').to_owned())
        }
        _ => None,
    }
}

fn joined(path: &[String], rest: &[String]) -> Vec<String> {
    path.iter().chain(rest).cloned().collect()
}

fn is_punct(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}

/// Whether a path goes on here, as behind the bracket of `Vec::<u8>::new`.
fn follows_path(tokens: &[TokenTree], at: usize) -> bool {
    let two_before = at.checked_sub(2).and_then(|from| tokens.get(from..at));
    matches!(two_before, Some([TokenTree::Punct(first), TokenTree::Punct(second)])
        if first.as_char() == ':' && first.spacing() == Spacing::Joint && second.as_char() == ':')
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}

fn line_of(token: &TokenTree) -> usize {
    token.span().start().line
}
