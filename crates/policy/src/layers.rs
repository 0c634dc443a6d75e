//! Whose rules they are, and what each may say.
//!
//! | layer | whose | may |
//! |---|---|---|
//! | `pack` | Banister's | allow, ask, deny |
//! | `org` | the organisation's, such as `/etc/banister/policy.yaml` | allow, ask, deny |
//! | `user` | the person's own file | allow, ask, deny; lift |
//! | `project` | the repository's `.banister.yaml` | ask, deny |
//! | `grant` | what the person has granted | allow; lift |
//!
//! The strictest rule wins, whatever its layer. An allow lifts an ask only where it names it, see
//! [`Rules::load`](crate::Rules::load).

use crate::pack::Pack;

/// A rule file that was read by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source<'a> {
    /// What messages call it: usually its path.
    pub name: &'a str,
    /// Its YAML.
    pub text: &'a str,
}

/// All rules that count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Layers<'a> {
    /// The embedded rules to start with.
    pub pack: Pack,
    /// The organisation's rules.
    pub org: Option<Source<'a>>,
    /// The person's own rules.
    pub user: Option<Source<'a>>,
    /// The repository's rules, which can only tighten.
    pub project: Option<Source<'a>>,
    /// What the person has granted.
    pub grants: Option<Source<'a>>,
}

impl<'a> Layers<'a> {
    /// The files, in the order in which equal rules are named: the more personal first.
    pub(crate) fn files(&self) -> impl Iterator<Item = (Layer, Source<'a>)> {
        [
            (Layer::Grant, self.grants),
            (Layer::User, self.user),
            (Layer::Project, self.project),
            (Layer::Org, self.org),
        ]
        .into_iter()
        .filter_map(|(layer, source)| Some((layer, source?)))
    }
}

/// Whose rule it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Banister's embedded rules.
    Pack,
    /// The organisation's.
    Org,
    /// The person's.
    User,
    /// The repository's.
    Project,
    /// Granted by the person.
    Grant,
}

impl Layer {
    /// Every layer.
    pub const ALL: [Self; 5] = [Self::Pack, Self::Org, Self::User, Self::Project, Self::Grant];

    /// What its rules' ids start with.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Pack => "pack",
            Self::Org => "org",
            Self::User => "user",
            Self::Project => "project",
            Self::Grant => "grant",
        }
    }

    /// Whether an allow of this layer may lift an ask of that one, if it names it.
    pub(crate) fn may_lift(self, asking: Self, liftable: bool) -> bool {
        match asking {
            Self::Pack => self != Self::Project,
            Self::User => matches!(self, Self::User | Self::Grant),
            Self::Org => self == Self::Org || liftable && matches!(self, Self::User | Self::Grant),
            Self::Project | Self::Grant => false,
        }
    }
}
