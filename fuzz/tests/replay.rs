//! Every target over its seeds, on stable.

use std::path::Path;

use banister_fuzz::TARGETS;

fn here(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be listed").path())
        .map(|path| path.file_stem().expect("it has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn every_target_holds_on_its_seeds() {
    for (target, body) in TARGETS {
        let folder = here("seeds").join(target);
        let mut replayed = 0;
        for entry in std::fs::read_dir(&folder).expect("every target has seeds") {
            let path = entry.expect("it can be listed").path();
            println!("{}", path.display());
            body(&std::fs::read(&path).expect("it can be read"));
            replayed += 1;
        }
        assert!(replayed >= 3, "{target} has {replayed} seeds");
    }
}

#[test]
fn every_target_holds_on_broken_variants_of_its_seeds() {
    for (target, body) in TARGETS {
        for entry in std::fs::read_dir(here("seeds").join(target)).expect("every target has seeds")
        {
            let seed =
                std::fs::read(entry.expect("it can be listed").path()).expect("it can be read");
            for cut in (0..seed.len()).step_by(1 + seed.len() / 40) {
                let (kept, rest) = seed.split_at(cut);
                body(kept);
                // One byte gone, and one byte turned into something it should not be.
                body(&[kept, rest.get(1..).unwrap_or_default()].concat());
                body(&[kept, b"\x00", rest.get(1..).unwrap_or_default()].concat());
                body(&[kept, b"\xff\"{", rest].concat());
            }
        }
    }
}

#[test]
fn no_target_and_no_seeds_are_forgotten() {
    let mut targets: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    targets.sort_unstable();
    assert_eq!(names(&here("fuzz_targets")), targets);
    assert_eq!(names(&here("seeds")), targets);
}
