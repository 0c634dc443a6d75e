use std::os::unix::fs::symlink;

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
    let dir = tempfile::tempdir().unwrap();
    dirs(dir.path(), &["one/.git", "one/src", "two/.git"]);
    let mut projects = Projects::default();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    assert_eq!(projects.of("s", &one.join("src"), None), one);
    assert_eq!(projects.of("s", &two, None), one);
    assert_eq!(projects.of("t", &two, None), two);
    for number in 0..MOST_SESSIONS {
        projects.of(&number.to_string(), &two, None);
    }
    assert_eq!(projects.order.len(), MOST_SESSIONS);
    assert_eq!(projects.of.len(), MOST_SESSIONS);
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

#[test]
fn links_are_found_on_the_way_and_behind_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    dirs(&root, &["project/sub", "secret/keys"]);
    let project = root.join("project");
    symlink(root.join("secret"), project.join("one")).unwrap();
    symlink("one/keys", project.join("two")).unwrap();
    symlink("loop", project.join("loop")).unwrap();
    let found = |path: &str| links(&[project.join(path)], &[&project]).unwrap();
    assert_eq!(found("sub/nothing/here"), []);
    assert_eq!(found("one/keys/id"), [(project.join("one"), root.join("secret"))]);
    let two = found("two/id");
    assert_eq!(two.first().unwrap(), &(project.join("two"), PathBuf::from("one/keys")));
    assert!(two.contains(&(project.join("one"), root.join("secret"))), "{two:?}");
    assert_eq!(found("loop").len(), 1, "a circle ends");
}

#[test]
fn links_on_the_way_to_the_project_are_not_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    dirs(&root, &["real/project"]);
    symlink("real", root.join("alias")).unwrap();
    let project = root.join("alias/project");
    assert_eq!(links(&[project.join("file")], &[&project]).unwrap(), []);
    assert_eq!(links(&[project.join("file")], &[]).unwrap().len(), 1);
}

#[test]
fn too_many_links_are_not_half_told() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let paths: Vec<PathBuf> =
        (0..=MOST_LINKS).map(|number| root.join(number.to_string())).collect();
    for path in &paths {
        symlink("/etc", path).unwrap();
    }
    assert_eq!(links(&paths, &[]), None);
    assert_eq!(links(&paths[..MOST_LINKS], &[]).unwrap().len(), MOST_LINKS);
}
