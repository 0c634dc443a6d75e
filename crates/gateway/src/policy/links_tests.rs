use std::os::unix::fs::symlink;

use super::*;

fn dirs(root: &Path, names: &[&str]) {
    for name in names {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
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
