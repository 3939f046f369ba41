//! What the API server can keep of what is published.

use std::borrow::Cow;

use crate::lb::Publish;

/// The version of a Kubernetes API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    major: u32,
    minor: u32,
}

impl ServerVersion {
    /// The version of these numbers.
    #[must_use]
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads what the server says about itself. Vendors put things behind the numbers (`31+`); `None` where there is no
    /// number at all.
    #[must_use]
    pub fn read(major: &str, minor: &str) -> Option<Self> {
        let number = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            text.get(..end)?.parse().ok()
        };
        Some(Self { major: number(major)?, minor: number(minor)? })
    }

    /// Whether `ipMode` of an address in the status is kept: from 1.30 on without a feature gate.
    #[must_use]
    pub fn keeps_ip_mode(self) -> bool {
        self >= Self { major: 1, minor: 30 }
    }
}

impl Publish {
    /// The same without what a server of this version does not keep: it would be missed, and written again, at every
    /// look. A version that is not known counts as new.
    #[must_use]
    pub fn fit_for(&self, server: Option<ServerVersion>) -> Cow<'_, Self> {
        if server.is_none_or(ServerVersion::keeps_ip_mode) {
            return Cow::Borrowed(self);
        }
        let mut fit = self.clone();
        fit.ingress.iter_mut().flatten().for_each(|entry| entry.ip_mode = None);
        Cow::Owned(fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{Ingress, IpMode};

    #[test]
    fn versions_of_vendors_are_read() {
        let table = [
            ("CS-128", "1", "31+", Some(true)),
            ("CS-123", "1", "30", Some(true)),
            ("CS-125", "1", "29", Some(false)),
            ("", "1", "29+", Some(false)),
            ("", "2", "0", Some(true)),
            ("", "0", "99", Some(false)),
            ("", "1+", "30-gke.1", Some(true)),
            ("nothing", "", "", None),
            ("no number", "1", "x", None),
            ("more than a number", "1", "99999999999", None),
        ];
        for (case, major, minor, want) in table {
            let keeps = ServerVersion::read(major, minor).map(ServerVersion::keeps_ip_mode);
            assert_eq!(keeps, want, "{case} {major}.{minor}");
        }
    }

    #[test]
    fn what_the_server_does_not_keep_is_not_sent() {
        let entry = |ip_mode| Ingress { ip: Some("192.0.2.1".to_owned()), ip_mode, ..Ingress::default() };
        let publish = |mode: Option<IpMode>| Publish {
            ingress: Some(vec![entry(mode.clone()), entry(mode)]),
            annotations: [("id".to_owned(), "7".to_owned())].into(),
            ..Publish::default()
        };
        let vip = publish(Some(IpMode::Vip));
        let table = [
            ("CS-124 new", ServerVersion::read("1", "30"), &vip),
            ("CS-125 old", ServerVersion::read("1", "29"), &publish(None)),
            ("nobody knows", None, &vip),
        ];
        for (case, server, want) in table {
            assert_eq!(*vip.fit_for(server), *want, "{case}");
        }
        let leaves = Publish::default();
        assert_eq!(*leaves.fit_for(ServerVersion::read("1", "29")), leaves, "what is there stays");
    }
}
