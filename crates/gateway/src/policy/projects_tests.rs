use super::*;

fn dirs(root: &Path, names: &[&str]) {
    for name in names {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
}

#[test]
fn a_project_is_the_repository_or_the_directory_itself() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    dirs(&home, &["work/orbit/.git", "work/orbit/src/deep", "work/plain/src"]);
    let of = |path: &str| project_of(&home.join(path), Some(&home));
    assert_eq!(of("work/orbit/src/deep"), home.join("work/orbit"));
    assert_eq!(of("work/orbit"), home.join("work/orbit"));
    assert_eq!(of("work/plain/src"), home.join("work/plain/src"));
    assert_eq!(project_of(Path::new("/"), Some(&home)), Path::new("/"));
}

#[test]
fn a_repository_that_holds_the_home_is_no_project() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    dirs(dir.path(), &["home/.git", ".git", "home/notes/old"]);
    assert_eq!(project_of(&home.join("notes/old"), Some(&home)), home.join("notes/old"));
    assert_eq!(project_of(&home, Some(&home)), home);
}

#[test]
fn a_session_keeps_its_project_wherever_it_goes() {
    let mut projects = Projects::default();
    let (one, two) = (PathBuf::from("/one"), PathBuf::from("/two"));
    assert_eq!(projects.settle("s", one.clone()), one);
    assert_eq!(projects.settle("s", two.clone()), one);
    assert_eq!(projects.settle("t", two.clone()), two);
    for number in 0..MOST_SESSIONS {
        projects.settle(&number.to_string(), two.clone());
    }
    assert_eq!(projects.order.len(), MOST_SESSIONS);
    assert_eq!(projects.of.len(), MOST_SESSIONS);
    assert!(!projects.knows("s"));
}

#[test]
fn the_journal_is_asked_once_about_a_session_and_does_not_overrule_what_is_settled() {
    let mut projects = Projects::default();
    let (one, two) = (PathBuf::from("/one"), PathBuf::from("/two"));
    assert!(!projects.knows("s"));
    projects.recall("s", None);
    assert!(projects.knows("s") && projects.of("s").is_none());
    assert_eq!(projects.settle("s", one.clone()), one);
    projects.recall("s", None);
    projects.recall("s", Some(two.clone()));
    assert_eq!(projects.of("s"), Some(&one));
    projects.recall("t", Some(two.clone()));
    assert_eq!(projects.settle("t", one), two);
    assert_eq!(projects.order.len(), 2);
}

#[test]
fn every_rule_file_between_the_root_and_the_directory_counts() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("repo");
    dirs(&root, &[".git", "a/.banister", "a/b", "other"]);
    for file in [".banister.yaml", "a/.banister/policy.yaml", "other/.banister.yaml"] {
        std::fs::write(root.join(file), "").unwrap();
    }
    std::fs::write(dir.path().join(".banister.yaml"), "").unwrap();
    let files = |cwd: &str| rule_files(&root.join(cwd), &root, None).0;
    let expected = [".banister.yaml", "a/.banister/policy.yaml"].map(|file| root.join(file));
    assert_eq!(files("a/b"), expected, "outermost first, and none from above the root");
    assert_eq!(files(""), [root.join(".banister.yaml")]);

    // Elsewhere, the rules of both places count.
    let elsewhere = dir.path().join("elsewhere");
    dirs(&elsewhere, &[".git"]);
    std::fs::write(elsewhere.join(".banister.yaml"), "").unwrap();
    let expected = [root.join(".banister.yaml"), elsewhere.join(".banister.yaml")];
    assert_eq!(rule_files(&elsewhere, &root, None).0, expected);

    dirs(&root, &[".banister"]);
    std::fs::write(root.join(".banister/policy.yaml"), "").unwrap();
    let (_, trouble) = rule_files(&root, &root, None);
    assert!(trouble.unwrap().to_string().contains("keep one of them"));
}
