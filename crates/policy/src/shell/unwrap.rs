//! Programs that run other programs, and builtins that change what follows.
//!
//! A wrapper is seen through only where its option grammar is known (`packs/wrappers.yaml`). A transparent one is
//! replaced by what it runs; one that changes what the command may do (`sudo`), or that lies in a directory anybody can
//! write to, stays listed before what it runs. A shell's text, a function's body, what `eval` or `trap` get is read where
//! it stands.

use std::rc::Rc;

use super::state::Function;
use super::walk::{PrintedText, ShellReader};
use super::wrappers::{Meaning, Wrapper, WrapperRuns, WrapperTable, table};
use super::{
    Assignment, CommandInput, Direction, FED_FILE, MAX_DEPTH, Simple, UNKNOWN, Word, printed,
    program, trusted_program,
};

const SHELLS: [&str; 8] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "rbash"];
/// Programs whose arguments or input are commands of another language.
const UNREAD: [&str; 10] =
    ["fish", "pwsh", "powershell", "cmd", "nu", "elvish", "csh", "tcsh", "enable", "hash"];
/// Words that are grammar where a command may start.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "[[", "]]", "if", "then", "else", "elif", "fi", "for", "foreach", "while",
    "until", "do", "done", "case", "esac", "select", "function", "repeat", "((",
];

/// Lists a command and everything it runs.
pub(super) fn unwrap(simple: Simple, reader: &mut ShellReader<'_>) {
    if reader.depth > MAX_DEPTH {
        reader.note("it is nested too deep");
        return reader.list(simple);
    }
    reader.depth += 1;
    dispatch(simple, reader);
    reader.depth -= 1;
}

#[expect(clippy::too_many_lines, reason = "one arm for each kind of program")]
fn dispatch(mut simple: Simple, reader: &mut ShellReader<'_>) {
    let Some(first) = simple.argv.first() else {
        for assignment in &simple.assignments {
            reader.set(assignment);
        }
        if simple.assignments.is_empty() && simple.redirects.is_empty() {
            return;
        }
        return reader.list(simple);
    };
    if !first.is_known() {
        reader.note("the program's name is not known before it runs");
        reader.output = PrintedText::Unknown;
        reader.list(simple.clone());
        if first.several {
            // It may be nothing at all, and then the next word is the program.
            let argv = simple.arguments().to_vec();
            if !argv.is_empty() {
                unwrap(Simple { argv, ..simple }, reader);
            }
        }
        return;
    }
    if first.glob {
        reader.note("the program's name is a pattern");
    }
    if let Some(set) = assignment(first) {
        // A shell takes it for an assignment, the grammar for a program.
        reader.note("it can be read in more than one way");
        let assignments = simple.assignments.iter().cloned().chain([set]).collect();
        let argv = simple.arguments().to_vec();
        return unwrap(Simple { assignments, argv, ..simple }, reader);
    }
    let word = first.text.clone();
    let called = reader.state.functions.get(&word).cloned();
    if let Some(function) = called {
        call(&word, &function, &simple, reader);
        if !function.maybe {
            return;
        }
    }
    if RESERVED.contains(&word.as_str()) && !(word == "[[" && is_test(&simple)) {
        reader.note("it has control flow that is not read");
        let argv = simple.arguments().to_vec();
        return unwrap(Simple { argv, ..simple }, reader);
    }
    let name = program(&word);
    if SHELLS.contains(&name.as_str()) {
        return shell(simple, &name, reader);
    }
    if UNREAD.contains(&name.as_str()) {
        reader.note(&format!("`{name}` runs text that is not read"));
        let text = joined(simple.arguments());
        reader.list(simple);
        reader.output = PrintedText::Unknown;
        return reader.apart(&name, &text);
    }
    let builtin = word == name;
    match name.as_str() {
        "eval" => {
            if !builtin {
                reader.list(simple.clone());
            }
            return evaluate(&simple, reader);
        }
        "source" | "." if builtin => return source(simple, reader),
        "trap" if builtin => return trap(simple, reader),
        "alias" if builtin => alias(&simple, reader),
        "cd" | "pushd" | "popd" | "chdir" if builtin => {
            let before = Rc::clone(&reader.state.directories);
            change_directory(&simple, reader);
            let named = |word: &Word| word.is_known() && !word.text.starts_with(['-', '+']);
            // Where it goes is what it names, if it names it; else it is judged by that as well.
            if name == "popd" || simple.argv.len() != 2 || !simple.arguments().iter().all(named) {
                let both = before.iter().chain(reader.state.directories.iter());
                let mut both: Vec<String> = both.cloned().collect();
                both.dedup();
                simple.directories = Rc::new(both);
            }
        }
        "set" if builtin && set_options(&simple, reader) => return,
        "shift" if builtin => reader.state.positional = None,
        "read" | "mapfile" | "readarray" | "getopts" | "let" | "export" | "declare" | "local"
        | "typeset" | "readonly" | "unset"
            if builtin =>
        {
            forget(&simple, reader);
        }
        "printf"
            if builtin
                && simple.arguments().first().is_some_and(|word| word.text.starts_with("-v")) =>
        {
            forget(&simple, reader);
        }
        "find" | "gfind" => return find(simple, reader),
        "fd" | "fdfind" => return fd(simple, reader),
        _ => {}
    }
    let Ok(table) = table() else {
        reader.note("the table of wrappers does not load");
        return reader.list(simple);
    };
    // `command -v` and `-V` only say where a program is.
    let looks_up = name == "command"
        && simple.arguments().first().is_some_and(|word| {
            word.text.starts_with('-') && word.text != "-p" && word.text != "--"
        });
    let arguments = simple.arguments().iter().map(|word| word.text.as_str());
    match table.find(&name, &arguments) {
        Some(wrapper) if !looks_up => through(wrapper, simple, &name, reader),
        _ => {
            embedded(table, &simple, &name, reader);
            printed::print(&simple, &name, reader);
            reader.list(simple);
        }
    }
}

fn is_test(simple: &Simple) -> bool {
    simple.argv.last().is_some_and(|word| word.text == "]]")
}

/// The words as a shell text. A part that is not known is a variable that nobody set.
fn joined(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ").replace(UNKNOWN, "$BANISTER_UNKNOWN")
}

/// Runs a function or an alias.
fn call(name: &str, function: &Function, simple: &Simple, reader: &mut ShellReader<'_>) {
    let step = format!("{} {name}", if function.alias { "alias" } else { "function" });
    around(simple, reader);
    if reader.steps.iter().filter(|known| ***known == *step).count() > 2 {
        return reader.note("a function calls itself");
    }
    reader.state.define(name, Function { called: true, ..function.clone() });
    let input = std::mem::replace(&mut reader.input, simple.input.clone());
    if function.alias {
        let mut text = format!("{} ", function.body);
        for word in simple.arguments() {
            if word.is_known() && !word.several {
                text.push('\'');
                text.push_str(&word.text.replace('\'', "'\''"));
                text.push_str("' ");
            } else {
                text.push_str("$BANISTER_UNKNOWN ");
            }
        }
        // Within its own text an alias is the program.
        let outer = Rc::clone(&reader.state.functions);
        Rc::make_mut(&mut reader.state.functions).remove(name);
        reader.nested(&step, &text);
        reader.state.functions = outer;
    } else {
        let outer = reader.state.positional.take();
        let sure = !simple.arguments().iter().any(|word| word.several || word.glob);
        reader.state.positional = sure.then(|| {
            let words = simple.arguments().iter();
            Rc::new(words.map(|word| word.is_known().then(|| word.text.as_str().into())).collect())
        });
        reader.nested(&step, &function.body);
        reader.state.positional = outer;
    }
    reader.input = input;
}

/// What is set or redirected for a wrapper holds for all it runs.
fn around(simple: &Simple, reader: &mut ShellReader<'_>) {
    if simple.assignments.is_empty() && simple.redirects.is_empty() {
        return;
    }
    reader.list(Simple { argv: Vec::new(), open_ended: false, ..simple.clone() });
}

fn is_trusted(simple: &Simple) -> bool {
    simple.argv.first().is_some_and(|word| trusted_program(&word.text).is_some())
}

fn through(
    wrapper: &'static Wrapper,
    mut simple: Simple,
    name: &str,
    reader: &mut ShellReader<'_>,
) {
    let skipped = wrapper.under.len();
    let mut words: std::collections::VecDeque<Word> =
        simple.arguments().iter().skip(skipped).cloned().collect();
    let mut step = name.to_owned();
    for word in simple.arguments().iter().take(skipped) {
        step.push(' ');
        step.push_str(&word.text);
    }
    let mut texts = Vec::new();
    if wrapper.dashes {
        while words.pop_front().is_some_and(|word| word.text != "--") {}
    } else {
        options(wrapper, &step, &mut words, &mut texts, reader);
    }
    let mut assignments = simple.assignments.clone();
    if wrapper.assignments {
        if words.front().is_some_and(|word| word.text == "-") {
            words.pop_front();
        }
        while let Some(set) = words.front().and_then(assignment) {
            assignments.push(set);
            words.pop_front();
        }
    }
    let argv: Vec<Word> = words.into();
    let keep = wrapper.keep || !is_trusted(&simple);
    if texts.is_empty() && argv.is_empty() {
        return reader.list(simple);
    }
    reader.output = PrintedText::Unknown;
    let elsewhere = std::mem::replace(&mut reader.elsewhere, simple.elsewhere || wrapper.elsewhere);
    let input = std::mem::replace(&mut reader.input, simple.input.clone());
    let as_text = wrapper.runs == WrapperRuns::Text;
    if keep {
        reader.list(simple.clone());
    } else if as_text || !texts.is_empty() {
        around(&Simple { assignments: assignments.clone(), ..simple.clone() }, reader);
    }
    for (text, known) in texts {
        if !known {
            reader.note("a shell gets a text that is not known before it runs");
        }
        reader.apart(&step, &text);
    }
    if argv.is_empty() {
    } else if as_text {
        if argv.iter().any(|word| !word.is_known() || word.glob) || wrapper.appends {
            reader.note("a shell gets a text that is not known before it runs");
        }
        reader.apart(&step, &joined(&argv));
    } else {
        let mut argv = argv;
        let mut open_ended = simple.open_ended;
        if wrapper.appends {
            open_ended = true;
            if let CommandInput::Text(text) = &simple.input {
                argv.extend(text.split_whitespace().take(256).map(Word::literal));
            }
        }
        let redirects = if keep { Vec::new() } else { std::mem::take(&mut simple.redirects) };
        let inner = Simple {
            assignments,
            argv,
            redirects,
            open_ended,
            input: if wrapper.appends { CommandInput::Pipe } else { simple.input.clone() },
            directories: Rc::clone(&simple.directories),
            elsewhere: reader.elsewhere,
            steps: Vec::new(),
        };
        reader.steps.push(step.as_str().into());
        unwrap(inner, reader);
        reader.steps.pop();
    }
    reader.elsewhere = elsewhere;
    reader.input = input;
}

/// Takes the options off the words.
fn options(
    wrapper: &Wrapper,
    step: &str,
    words: &mut std::collections::VecDeque<Word>,
    texts: &mut Vec<(String, bool)>,
    reader: &mut ShellReader<'_>,
) {
    let mut operands = wrapper.operands;
    loop {
        while words.front().is_some_and(|word| word.text.starts_with('-') && word.text != "-") {
            let Some(option) = words.pop_front() else { break };
            if option.text == "--" {
                operands = operands.min(words.len());
                words.drain(..operands);
                return;
            }
            match wrapper.meaning(&option.text) {
                Meaning::Flag => {}
                Meaning::Valued => drop(words.pop_front()),
                Meaning::Text(Some(text)) => {
                    texts.push((text.replace(UNKNOWN, "$BANISTER_UNKNOWN"), option.is_known()));
                }
                Meaning::Text(None) => {
                    if let Some(word) = words.pop_front() {
                        texts.push((joined(std::slice::from_ref(&word)), word.is_known()));
                    }
                }
                Meaning::Unknown => {
                    let option = option.shown();
                    reader.note(&format!(
                        "`{step}` has an option that is not known here: `{option}`"
                    ));
                }
            }
        }
        let maybe_option = words.front().is_some_and(|word| {
            word.text.starts_with(UNKNOWN) || (word.glob && word.text.starts_with(['*', '?', '[']))
        });
        if maybe_option {
            reader.note(&format!("`{step}` has a word that may be an option"));
        }
        if operands == 0 {
            return;
        }
        // Some take options behind the first operand too.
        operands -= 1;
        if words.pop_front().is_none() {
            return;
        }
        if wrapper.runs == WrapperRuns::Text || wrapper.elsewhere {
            words.drain(..operands.min(words.len()));
            return;
        }
    }
}

fn assignment(word: &Word) -> Option<Assignment> {
    let (name, value) = word.text.split_once('=')?;
    let is_name = !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| Assignment {
        name: name.to_owned(),
        value: Word { text: value.to_owned(), ..word.clone() },
    })
}

/// `sh -c TEXT` is the text; a shell without one reads a file or its input.
fn shell(simple: Simple, name: &str, reader: &mut ShellReader<'_>) {
    let mut words = simple.arguments().iter().peekable();
    let mut from_argument = false;
    let mut from_input = false;
    while let Some(word) =
        words.next_if(|word| word.text.starts_with(['-', '+']) && word.text.len() > 1)
    {
        let option = word.text.as_str();
        if option == "--" {
            break;
        }
        let letters = option.get(1..).unwrap_or_default();
        let long =
            matches!(option, "--login" | "--norc" | "--noprofile" | "--posix" | "--noediting");
        let plain =
            !option.starts_with("--") && letters.chars().all(|c| "abcefhilmnopsuvx".contains(c));
        if !(long || plain) {
            let option = word.shown();
            reader.note(&format!("`{name}` has an option that is not known here: `{option}`"));
        }
        if plain && option.starts_with('-') {
            from_argument |= letters.contains('c');
            from_input |= letters.contains('s');
        }
        if plain && letters.contains('o') {
            let set = words.next().map_or("", |word| word.text.as_str());
            if !OPTION_NAMES.contains(&set) {
                reader.note(&format!("`{name}` has an option that is not known here: `-o`"));
            }
        }
    }
    let operand = words.next().cloned();
    let trusted = is_trusted(&simple);
    reader.output = PrintedText::Unknown;
    let step = format!("{name} -c");
    match operand {
        Some(text) if from_argument => {
            if simple.open_ended {
                reader.note("a shell gets words that are not known before it runs");
            }
            if !text.is_known() || text.glob {
                reader.note("a shell gets a text that is not known before it runs");
            }
            if trusted {
                around(&simple, reader);
            } else {
                reader.list(simple.clone());
            }
            let positional: Vec<Option<Rc<str>>> = words
                .skip(1)
                .map(|word| (word.is_known() && !word.several).then(|| word.text.as_str().into()))
                .collect();
            let outer = reader.state.positional.take();
            let sure = !simple.open_ended && !simple.argv.iter().any(|word| word.several);
            reader.state.positional = sure.then(|| Rc::new(positional));
            let input = std::mem::replace(&mut reader.input, simple.input.clone());
            let elsewhere = std::mem::replace(&mut reader.elsewhere, simple.elsewhere);
            reader.apart(&step, &joined(&[text]));
            reader.elsewhere = elsewhere;
            reader.input = input;
            reader.state.positional = outer;
        }
        Some(file) if !from_input && !is_input(&file.text) => {
            if file.text == FED_FILE {
                reader.note("a shell runs what another command prints");
            }
            reader.list(simple);
        }
        _ => input(simple, name, reader),
    }
}

const OPTION_NAMES: [&str; 9] = [
    "pipefail",
    "errexit",
    "nounset",
    "xtrace",
    "verbose",
    "noclobber",
    "errtrace",
    "functrace",
    "posix",
];

fn is_input(file: &str) -> bool {
    matches!(file, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

/// A shell that reads its commands from its input.
fn input(simple: Simple, name: &str, reader: &mut ShellReader<'_>) {
    let from_file = simple.redirects.iter().any(|file| file.direction == Direction::Read);
    match &simple.input {
        CommandInput::Text(text) if !from_file => {
            let text = Rc::clone(text);
            reader.reading.decoded |= reader.decoded;
            let elsewhere = std::mem::replace(&mut reader.elsewhere, simple.elsewhere);
            if is_trusted(&simple) {
                around(&simple, reader);
            } else {
                reader.list(simple);
            }
            let input = std::mem::replace(&mut reader.input, CommandInput::Pipe);
            reader.apart(&format!("{name} from a text"), &text);
            reader.input = input;
            reader.elsewhere = elsewhere;
        }
        CommandInput::Pipe if !from_file => {
            reader.note("a shell runs what another command prints");
            reader.list(simple);
        }
        _ => {
            reader.note("a shell reads its commands from its input");
            reader.list(simple);
        }
    }
}

fn evaluate(simple: &Simple, reader: &mut ShellReader<'_>) {
    around(simple, reader);
    reader.output = PrintedText::Unknown;
    let words = simple.arguments();
    if words.iter().any(|word| !word.is_known() || word.glob) {
        reader.note("`eval` runs a text that is not known before it runs");
    }
    let text = joined(words);
    reader.nested("eval", &text);
}

fn source(simple: Simple, reader: &mut ShellReader<'_>) {
    let file = simple.arguments().first().map(|word| word.text.clone()).unwrap_or_default();
    reader.output = PrintedText::Unknown;
    match &simple.input {
        _ if file == "/dev/null" => reader.list(simple),
        CommandInput::Text(text) if is_input(&file) && simple.redirects.is_empty() => {
            let text = Rc::clone(text);
            reader.reading.decoded |= reader.decoded;
            reader.nested("source", &text);
        }
        _ => {
            reader.note("`source` runs a file that is not read");
            reader.state.forget_all();
            reader.list(simple);
        }
    }
}

/// `trap TEXT SIGNAL…` runs the text some time.
fn trap(simple: Simple, reader: &mut ShellReader<'_>) {
    around(&simple, reader);
    let Some(word) = simple.arguments().iter().find(|word| word.text != "--") else {
        return reader.list(simple);
    };
    if word.text.is_empty() || word.text.starts_with('-') || simple.argv.len() < 3 {
        return reader.list(simple);
    }
    if !word.is_known() {
        reader.note("`trap` runs a text that is not known before it runs");
    }
    let text = joined(std::slice::from_ref(word));
    reader.apart("trap", &text);
}

fn alias(simple: &Simple, reader: &mut ShellReader<'_>) {
    for word in simple.arguments() {
        if let Some((name, body)) = word.text.split_once('=') {
            if !word.is_known() {
                reader.note("an alias is not known before it runs");
            }
            reader.define(name, &body.replace(UNKNOWN, "$BANISTER_UNKNOWN"), true);
        }
    }
}

fn change_directory(simple: &Simple, reader: &mut ShellReader<'_>) {
    let unknown = UNKNOWN.to_string();
    let target =
        simple.arguments().iter().find(|word| word.text == "-" || !word.text.starts_with('-'));
    let pops = simple.argv.first().is_some_and(|word| word.text == "popd");
    let target = match target {
        _ if pops => &unknown,
        Some(word)
            if word.several || word.glob || word.text == "-" || word.text.starts_with('+') =>
        {
            &unknown
        }
        Some(word) => &word.text,
        None => "~",
    };
    reader.go(target);
}

/// Whether `set` only changes how a script fails or shows itself.
fn set_options(simple: &Simple, reader: &mut ShellReader<'_>) -> bool {
    let mut words = simple.arguments().iter();
    if simple.argv.len() < 2 {
        return false;
    }
    while let Some(word) = words.next() {
        if word.text == "--" || !word.text.starts_with(['-', '+']) {
            reader.state.positional = None;
            return true;
        }
        let letters = word.text.get(1..).unwrap_or_default();
        if letters.is_empty() || !letters.chars().all(|c| "euxvECo".contains(c)) {
            return false;
        }
        if letters.contains('o')
            && !words.next().is_some_and(|word| OPTION_NAMES.contains(&word.text.as_str()))
        {
            return false;
        }
    }
    true
}

/// Forgets the variables that a builtin names.
fn forget(simple: &Simple, reader: &mut ShellReader<'_>) {
    for word in simple.arguments() {
        let name = word.text.split(['=', '[', '+', '-']).next().unwrap_or_default();
        if name.contains(UNKNOWN) {
            reader.state.forget_all();
        } else if !name.is_empty() {
            reader.state.forget(name);
        }
    }
    reader.state.forget("REPLY");
}

/// `find` stays listed; what `-exec` and its kin run follows it.
fn find(simple: Simple, reader: &mut ShellReader<'_>) {
    let mut inner = Vec::new();
    let mut words = simple.arguments().iter();
    while let Some(word) = words.next() {
        if matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            let argv: Vec<Word> = words
                .by_ref()
                .take_while(|word| word.text != ";" && word.text != "+")
                .cloned()
                .collect();
            inner.push((word.text.clone(), argv));
        }
    }
    reader.output = PrintedText::Unknown;
    let outer = Simple {
        argv: Vec::new(),
        redirects: Vec::new(),
        assignments: Vec::new(),
        ..simple.clone()
    };
    reader.list(simple);
    for (option, argv) in inner {
        reader.steps.push(format!("find {option}").into());
        unwrap(Simple { argv, open_ended: true, ..outer.clone() }, reader);
        reader.steps.pop();
    }
}

/// `fd -x` and `-X` run what follows.
fn fd(simple: Simple, reader: &mut ShellReader<'_>) {
    let at = simple
        .argv
        .iter()
        .position(|word| matches!(word.text.as_str(), "-x" | "-X" | "--exec" | "--exec-batch"));
    let argv: Vec<Word> = at
        .and_then(|at| simple.argv.get(at + 1..))
        .unwrap_or_default()
        .iter()
        .take_while(|word| word.text != ";")
        .cloned()
        .collect();
    reader.output = PrintedText::Unknown;
    let outer = Simple {
        argv,
        redirects: Vec::new(),
        assignments: Vec::new(),
        open_ended: true,
        ..simple.clone()
    };
    reader.list(simple);
    if !outer.argv.is_empty() {
        reader.steps.push("fd -x".into());
        unwrap(outer, reader);
        reader.steps.pop();
    }
}

/// Reads what an option of a program runs. The program itself is listed whatever is found.
fn embedded(
    table: &'static WrapperTable,
    simple: &Simple,
    name: &str,
    reader: &mut ShellReader<'_>,
) {
    for embedded in table.embedded(name) {
        let mut words = simple.arguments().iter().peekable();
        while let Some(word) = words.next() {
            let found = embedded.options.iter().find_map(|option| {
                let rest = word.text.strip_prefix(option.as_str())?;
                if rest.is_empty() {
                    return words.peek().map(|next| next.text.as_str());
                }
                match rest.strip_prefix('=') {
                    Some(value) => Some(value),
                    None => (!option.starts_with("--")).then_some(rest),
                }
            });
            let Some(value) = found else { continue };
            let text = if embedded.after.is_empty() {
                Some(value)
            } else {
                embedded
                    .after
                    .iter()
                    .find_map(|mark| value.split_once(mark.as_str()).map(|(_, text)| text))
            };
            if let Some(text) = text {
                let text = text.replace(UNKNOWN, "$BANISTER_UNKNOWN");
                reader.apart(&format!("{name} option"), &text);
            }
        }
    }
}
