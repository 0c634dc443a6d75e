//! Rule files: where they are, whether they have changed, what they say.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use banister_policy::{Layers, Pack, RuleSource, Rules};

/// Where an organisation's rules are.
pub const ORG: &str = "/etc/banister/policy.yaml";
/// What a project's own rules are called, from its folders.
pub const PROJECT: [&str; 2] = [".banister.yaml", ".banister/policy.yaml"];

/// The longest rule file that is read, in bytes; policy takes no longer one.
const LONGEST: u64 = 1024 * 1024;

/// Where rules come from.
#[derive(Debug, Clone, Default)]
pub struct RuleFiles {
    /// The embedded rules to start with.
    pub pack: Pack,
    /// The organisation's rules.
    pub org: Option<RuleFile>,
    /// The person's rules.
    pub user: Option<RuleFile>,
    /// Rules that are only tried: what they would have said is recorded where it differs.
    pub shadow: Option<RuleFile>,
}

/// One rule file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it has to be there.
    pub required: bool,
}

impl RuleFile {
    /// A file that somebody named: it has to be there.
    pub fn named(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), required: true }
    }

    /// A file that counts if it is there.
    pub fn usual(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), required: false }
    }

    /// What it says; `None` where it need not be there and is not.
    fn read(&self) -> Result<Option<RuleText>, RulesTrouble> {
        match read(&self.path) {
            Ok(text) => Ok(Some(RuleText { name: self.path.display().to_string(), text })),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.required => {
                Ok(None)
            }
            Err(source) => Err(RulesTrouble::Unreadable { path: self.path.clone(), source }),
        }
    }
}

/// Why rules do not count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulesTrouble {
    /// A file cannot be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// Rules do not load.
    #[error(transparent)]
    Wrong(#[from] banister_policy::Error),
    /// A folder has its rules under both names.
    #[error("{folder}: there are both {} and {}; keep one of them", PROJECT[0], PROJECT[1])]
    Both {
        /// The folder.
        folder: PathBuf,
    },
}

/// The text of a file, and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleText {
    pub(super) name: String,
    pub(super) text: String,
}

impl RuleText {
    fn source(text: Option<&Self>) -> Option<RuleSource<'_>> {
        text.map(|text| RuleSource { name: &text.name, text: &text.text })
    }
}

/// What makes up the rules that count everywhere.
#[derive(Debug, Clone, Default)]
pub(super) struct RuleTexts {
    pack: Pack,
    org: Option<RuleText>,
    user: Option<RuleText>,
}

impl RuleTexts {
    pub(super) fn read(files: &RuleFiles) -> Result<Self, RulesTrouble> {
        let text = |file: &Option<RuleFile>| file.as_ref().map_or(Ok(None), RuleFile::read);
        Ok(Self { pack: files.pack, org: text(&files.org)?, user: text(&files.user)? })
    }

    /// The rules that a candidate for the person's would make.
    pub(super) fn with_user(self, file: &RuleFile) -> Result<Self, RulesTrouble> {
        Ok(Self { user: file.read()?, ..self })
    }

    pub(super) fn load(
        &self,
        project: Option<&RuleText>,
        grants: Option<&RuleText>,
    ) -> Result<Rules, banister_policy::Error> {
        Rules::load(&Layers {
            pack: self.pack,
            org: RuleText::source(self.org.as_ref()),
            user: RuleText::source(self.user.as_ref()),
            project: RuleText::source(project),
            grants: RuleText::source(grants),
        })
    }
}

/// What a file looks like from outside: another stamp, another text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileStamp {
    modified: (i64, i64),
    changed: (i64, i64),
    length: u64,
    inode: u64,
}

impl FileStamp {
    /// `None` where there is no file.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let file = std::fs::metadata(path).ok()?;
        Some(Self {
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
            length: file.len(),
            inode: file.ino(),
        })
    }
}

/// A project's rule file.
pub(super) fn project_text(path: &Path) -> Result<RuleText, RulesTrouble> {
    let text =
        read(path).map_err(|source| RulesTrouble::Unreadable { path: path.to_owned(), source })?;
    Ok(RuleText { name: path.display().to_string(), text })
}

/// Reads no more than a rule file may hold, and nothing that is no file: a pipe would never end.
fn read(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("this is no file"));
    }
    let mut text = String::new();
    // One byte more, so that policy sees that it is too long.
    std::fs::File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    Ok(text)
}
