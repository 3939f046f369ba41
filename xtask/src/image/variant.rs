//! Which images there are: what is compiled in, for which processors, and what they are called.

use crate::Result;

/// A processor, by the name that images have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arch {
    Amd64,
    Arm64,
}

impl Arch {
    pub(crate) const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// A static one: the image has no libraries.
    pub(crate) fn target(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64-unknown-linux-musl",
            Self::Arm64 => "aarch64-unknown-linux-musl",
        }
    }

    /// What Rust calls the processor.
    pub(crate) fn processor(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    pub(crate) fn of_this_machine() -> Result<Self> {
        let here = std::env::consts::ARCH;
        let found = Self::ALL.into_iter().find(|arch| arch.processor() == here);
        found.ok_or_else(|| format!("there is no image for the processor of this machine, {here}"))
    }

    /// Parses `amd64,arm64`.
    pub(crate) fn parse_list(text: &str) -> Result<Vec<Self>> {
        let mut found = Vec::new();
        for name in text.split(',') {
            let arch = Self::ALL.into_iter().find(|arch| arch.name() == name);
            found.push(arch.ok_or_else(|| format!("--arch={name} is not known: amd64 and arm64 are"))?);
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

/// A kind of image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variant {
    /// The clouds that one rents.
    Plain,
    /// With Cloudlycke, the cloud on one's own computer, too.
    Lycke,
    /// With helm, which the cluster manager for Rancher runs.
    Rancher,
}

impl Variant {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Lycke, Self::Rancher];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Lycke => "lycke",
            Self::Rancher => "rancher",
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|variant| variant.name() == text);
        found.ok_or_else(|| format!("--variant={text} is not known: plain, lycke and rancher are"))
    }

    /// What cargo is told. The simulated surroundings are in none.
    pub(crate) fn features(self) -> &'static [&'static str] {
        match self {
            Self::Plain | Self::Rancher => &["--no-default-features"],
            Self::Lycke => &["--no-default-features", "--features=lycke"],
        }
    }

    pub(crate) fn has_cloud(self, name: &str) -> bool {
        name != "cloudlycke" || self == Self::Lycke
    }

    pub(crate) fn has_helm(self) -> bool {
        self == Self::Rancher
    }

    /// `0.1.0`, or `0.1.0-rancher`: variants of one version lie beside each other in a registry.
    pub(crate) fn tag(self, version: &str) -> String {
        match self {
            Self::Plain => version.to_owned(),
            Self::Lycke | Self::Rancher => format!("{version}-{}", self.name()),
        }
    }

    /// What the files of a variant are called: `cloudberth-0.1.0-linux-amd64`.
    pub(crate) fn file(self, version: &str, arch: Arch) -> String {
        format!("cloudberth-{}-linux-{}", self.tag(version), arch.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_others_refused() {
        assert_eq!(Arch::parse_list("arm64,amd64,arm64"), Ok(vec![Arch::Amd64, Arch::Arm64]));
        assert_eq!(Arch::parse_list("x86"), Err("--arch=x86 is not known: amd64 and arm64 are".to_owned()));
        for variant in Variant::ALL {
            assert_eq!(Variant::parse(variant.name()), Ok(variant));
        }
        assert!(Variant::parse("slim").unwrap_err().contains("plain, lycke and rancher"));
    }

    #[test]
    fn variants_differ_by_tag() {
        assert_eq!(Variant::Plain.tag("0.1.0"), "0.1.0");
        assert_eq!(Variant::Rancher.file("0.1.0", Arch::Arm64), "cloudberth-0.1.0-rancher-linux-arm64");
    }
}
