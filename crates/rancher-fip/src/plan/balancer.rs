//! `PureLB` or `MetalLB`, and when neither: two balancers in one cluster would fight over its addresses.

use crate::{
    config::{Chart, Config},
    problem::{Again, Problem},
    reasons::{BALANCER_CONFLICT, BALANCER_MISSING, BALANCER_UNKNOWN},
};

/// A load balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `purelb`
    PureLb,
    /// `metallb`
    MetalLb,
}

impl Kind {
    /// As the label and the downstream Secret have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PureLb => "purelb",
            Self::MetalLb => "metallb",
        }
    }

    /// Its chart.
    pub const fn chart(self, config: &Config) -> &Chart {
        match self {
            Self::PureLb => &config.purelb,
            Self::MetalLb => &config.metallb,
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::PureLb => Self::MetalLb,
            Self::MetalLb => Self::PureLb,
        }
    }
}

/// Whether a balancer is installed. A history that was kept after a removal does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Present,
    /// It is not, or there is no name to look for.
    Absent,
    /// The look-up failed.
    Unknown,
}

/// What is installed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Installed {
    /// `PureLB`.
    pub purelb: Presence,
    /// `MetalLB`.
    pub metallb: Presence,
}

impl Installed {
    const fn of(self, kind: Kind) -> Presence {
        match kind {
            Kind::PureLb => self.purelb,
            Kind::MetalLb => self.metallb,
        }
    }
}

/// What the downstream Secret says about the balancer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretType {
    /// Exactly this.
    Exactly(Kind),
    /// What it says already, and this if it says nothing.
    KeepOr(Kind),
}

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The balancer to install or upgrade; none if there is a reason against it.
    pub install: Option<Kind>,
    /// What the downstream Secret says.
    pub secret: SecretType,
    /// What a person should know.
    pub problem: Option<Problem>,
}

/// The balancer that the label asks for where nothing stands in the way.
pub fn asked(label: Option<&str>) -> Kind {
    if label == Some("metallb") { Kind::MetalLb } else { Kind::PureLb }
}

/// Decides for a cluster with this label.
pub fn choose(label: Option<&str>, config: &Config, installed: Installed) -> Choice {
    let (pure, metal) = (config.purelb.is_complete(), config.metallb.is_complete());
    let asked = asked(label);
    let none = |problem| Choice { install: None, secret: SecretType::KeepOr(asked), problem };
    if installed.purelb == Presence::Unknown || installed.metallb == Presence::Unknown {
        return none(None);
    }
    if installed.purelb == Presence::Present && installed.metallb == Presence::Present {
        return none(Some(conflict("both PureLB and MetalLB are installed; neither is touched")));
    }
    let explicit = label == Some(asked.name());
    let kind = match (pure, metal) {
        (false, false) => return none(Some(not_configured("a load balancer"))),
        (true, true) if label.is_none() && installed.metallb == Presence::Present => Kind::MetalLb,
        (true, true) => asked,
        // There is one only. What the label asks for by name has to be that one.
        (only_pure, _) => {
            let only = if only_pure { Kind::PureLb } else { Kind::MetalLb };
            if explicit && asked != only {
                return none(Some(not_configured(asked.name())));
            }
            only
        }
    };
    if installed.of(kind.other()) == Presence::Present {
        let text = format!(
            "{} is to be installed, but {} is; uninstall it, or change the label rancher-fip-lbtype",
            kind.name(),
            kind.other().name()
        );
        return Choice {
            install: None,
            secret: SecretType::Exactly(kind.other()),
            problem: Some(conflict(&text)),
        };
    }
    let unknown = label.filter(|_| !explicit).map(|label| {
        Problem::new(
            BALANCER_UNKNOWN,
            Again::Never,
            format!(
                "the label rancher-fip-lbtype is {label:?}, which is neither metallb nor purelb; {} is used",
                kind.name()
            ),
        )
    });
    Choice { install: Some(kind), secret: SecretType::Exactly(kind), problem: unknown }
}

fn conflict(text: &str) -> Problem {
    Problem::new(BALANCER_CONFLICT, Again::Slow, text)
}

fn not_configured(what: &str) -> Problem {
    Problem::new(BALANCER_MISSING, Again::Slow, format!("{what} is to be installed, and is not configured"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pure: bool, metal: bool) -> Config {
        let chart = |name: &str, there: bool| {
            let text = |text: &str| if there { text.to_owned() } else { String::new() };
            Chart {
                name: text(name),
                reference: text("oci://r/c"),
                namespace: text("lb"),
                ..Chart::default()
            }
        };
        Config { purelb: chart("purelb", pure), metallb: chart("metallb", metal), ..Config::default() }
    }

    #[test]
    fn there_is_never_a_second_balancer() {
        use Kind::{MetalLb, PureLb};
        use SecretType::{Exactly, KeepOr};
        let nothing = Installed { purelb: Presence::Absent, metallb: Presence::Absent };
        let pure = Installed { purelb: Presence::Present, ..nothing };
        let metal = Installed { metallb: Presence::Present, ..nothing };
        let both = Installed { purelb: Presence::Present, ..metal };
        let unknown = Installed { purelb: Presence::Unknown, ..nothing };
        let (seed, only_pure, two, none) =
            (config(false, true), config(true, false), config(true, true), config(false, false));
        let (conflict, missing, odd) = (
            Some("LoadBalancerConflict"),
            Some("LoadBalancerNotConfigured"),
            Some("LoadBalancerTypeUnknown"),
        );
        let table = [
            ("RF-79", None, &two, nothing, Some(PureLb), Exactly(PureLb), None),
            ("RF-80", Some("metallb"), &two, nothing, Some(MetalLb), Exactly(MetalLb), None),
            ("RF-80 again", Some("metallb"), &two, metal, Some(MetalLb), Exactly(MetalLb), None),
            ("RF-81", Some("MetalLB"), &two, nothing, Some(PureLb), Exactly(PureLb), odd),
            ("RF-81 foo", Some("foo"), &two, pure, Some(PureLb), Exactly(PureLb), odd),
            ("by name", Some("purelb"), &two, nothing, Some(PureLb), Exactly(PureLb), None),
            ("RF-82", None, &seed, nothing, Some(MetalLb), Exactly(MetalLb), None),
            ("RF-82 again", None, &seed, metal, Some(MetalLb), Exactly(MetalLb), None),
            ("RF-82 an unknown value", Some("foo"), &seed, nothing, Some(MetalLb), Exactly(MetalLb), odd),
            ("RF-83", Some("metallb"), &seed, nothing, Some(MetalLb), Exactly(MetalLb), None),
            ("RF-84", Some("purelb"), &seed, nothing, None, KeepOr(PureLb), missing),
            ("only PureLB", Some("metallb"), &only_pure, nothing, None, KeepOr(MetalLb), missing),
            ("only PureLB, none", None, &only_pure, nothing, Some(PureLb), Exactly(PureLb), None),
            ("RF-85", Some("metallb"), &two, pure, None, Exactly(PureLb), conflict),
            ("RF-86", Some("purelb"), &two, metal, None, Exactly(MetalLb), conflict),
            ("another value", Some("foo"), &two, metal, None, Exactly(MetalLb), conflict),
            ("RF-87", None, &two, metal, Some(MetalLb), Exactly(MetalLb), None),
            (
                "RF-88 the other is uninstalled",
                Some("purelb"),
                &two,
                nothing,
                Some(PureLb),
                Exactly(PureLb),
                None,
            ),
            ("RF-90", Some("metallb"), &two, unknown, None, KeepOr(MetalLb), None),
            ("RF-214", None, &two, both, None, KeepOr(PureLb), conflict),
            ("RF-214", Some("metallb"), &two, both, None, KeepOr(MetalLb), conflict),
            ("no balancer at all", None, &none, nothing, None, KeepOr(PureLb), missing),
        ];
        for (case, label, config, installed, install, secret, reason) in table {
            let choice = choose(label, config, installed);
            let told = choice.problem.as_ref().map(|problem| problem.reason.name());
            assert_eq!((choice.install, choice.secret, told), (install, secret, reason), "{case}");
        }
    }

    #[test]
    fn a_conflict_is_looked_at_again() {
        let metal = Installed { purelb: Presence::Absent, metallb: Presence::Present };
        let choice = choose(Some("purelb"), &config(true, true), metal);
        assert_eq!(choice.problem.unwrap().again, Again::Slow, "RF-88");
    }
}
