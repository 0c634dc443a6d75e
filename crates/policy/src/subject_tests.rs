use std::path::Path;

use serde_json::json;

use super::*;
use crate::shell::READS;
use crate::{Layers, Pack, Rules, evaluate, explain};

fn action(input: Value) -> Action {
    Action { input: Some(input), ..Action::unseen("1", "Bash") }
}

/// How many texts are read meanwhile.
fn reads(during: impl FnOnce()) -> usize {
    let before = READS.get();
    during();
    READS.get() - before
}

#[test]
fn an_action_is_read_once_for_links_verdicts_and_explanations_of_all_rules() {
    let packs = Pack::ALL.map(|pack| Rules::load(&Layers { pack, ..Layers::default() }).unwrap());
    let links = [(PathBuf::from("/home/me/project/out"), PathBuf::from("/etc"))];
    for input in [
        json!({ "command": "cd out && X=rm; sh -c 'cat passwd' | tee $X" }),
        json!({ "command": ["cat", "out/passwd"] }),
        json!({ "command": "cat passwd", "workdir": "out/.." }),
    ] {
        let action = action(input);
        let request = ActionRequest::example(&action);
        let [first, ..] = &packs;
        let read = reads(|| {
            let subject = first.read(&request);
            assert!(subject.named_paths().is_some());
            let subject = subject.with_links(&links);
            for rules in &packs {
                let explanation = explain(rules, &subject);
                assert_eq!(evaluate(rules, &subject).decision, explanation.verdict);
            }
        });
        assert_eq!(read, 1, "{action:?}");
    }
}

#[test]
fn links_that_are_found_later_count_as_if_they_had_been_known() {
    let rules = Rules::builtin().unwrap();
    let project = Path::new("/home/me/project");
    let keys = [(project.join("keys"), PathBuf::from("/home/me/.ssh"))];
    let decide = |input: &Value, links: &[(PathBuf, PathBuf)]| {
        let action = action(input.clone());
        evaluate(&rules, &rules.read(&ActionRequest::example(&action)).with_links(links)).rule
    };
    for input in [
        json!({ "command": "cat keys/id_ed25519" }),
        json!({ "command": "cat id_ed25519", "workdir": "keys" }),
        json!({ "command": "cat $PWD/id_ed25519", "workdir": "keys" }),
        // Behind the link, `..` is the home.
        json!({ "command": "cat .ssh/id_ed25519", "workdir": "keys/.." }),
    ] {
        assert_eq!(decide(&input, &keys), "pack.secret.touch", "{input}");
    }
    // Where `..` may lead elsewhere, the name of the directory is not known.
    let input = json!({ "command": "cat $PWD/notes", "workdir": "keys/.." });
    assert_ne!(decide(&input, &[]), decide(&json!({ "command": "cat notes" }), &[]));
    assert_ne!(decide(&input, &keys), decide(&json!({ "command": "cat notes" }), &[]));
}
