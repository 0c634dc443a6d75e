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
