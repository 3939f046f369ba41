//! Which clouds run, and which Services each of them serves.

use std::{collections::BTreeMap, path::PathBuf};

use cloudberth_core::error::Error;

use super::checks::{Checks, some};
use crate::flags::Flags;

/// Which clouds run, and which Services each of them serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clouds {
    /// The providers, in the order given. Never empty unless that was a mistake.
    pub providers: Vec<String>,
    /// Who serves Services that name no load-balancer class. `None`: nobody does, because several run and none was
    /// named.
    pub default_provider: Option<String>,
    /// The classes to serve besides each provider's own: class to provider.
    pub classes: BTreeMap<String, String>,
    /// Their configuration files: provider to file.
    pub config_files: BTreeMap<String, PathBuf>,
    /// The cluster's name, as it appears in what is made in the cloud.
    pub cluster_name: String,
}

pub(super) fn clouds(flags: &Flags, known: &[&str], checks: &mut Checks) -> Clouds {
    let providers = providers(flags, known, checks);
    let default_provider = default_provider(flags, &providers, checks);
    Clouds {
        classes: classes(flags, &providers, checks),
        config_files: config_files(flags, &providers, known, checks),
        default_provider,
        providers,
        cluster_name: flags.cluster_name.get().clone(),
    }
}

/// How the mistake begins that no cloud is named.
pub(crate) const NO_PROVIDER: &str = "--cloud-provider cannot be empty";

fn providers(flags: &Flags, known: &[&str], checks: &mut Checks) -> Vec<String> {
    let flag = &flags.cloud_provider;
    let mut providers: Vec<String> = Vec::new();
    if flag.get().trim().is_empty() {
        let text = format!("{NO_PROVIDER}; name one or more of {}", known.join(", "));
        checks.mistakes.push(Error::user_input(text));
        return providers;
    }
    for name in flag.get().split(',').map(str::trim) {
        if name.is_empty() {
            checks.wrong(flag, "there is an empty name between its commas");
        } else if !known.contains(&name) {
            let text =
                format!("unknown cloud provider {name:?}; --cloud-provider takes {}", known.join(", "));
            checks.mistakes.push(Error::user_input(text));
        } else if providers.iter().any(|other| other == name) {
            checks.wrong(flag, format_args!("it names {name} twice"));
        } else {
            providers.push(name.to_owned());
        }
    }
    providers
}

fn default_provider(flags: &Flags, providers: &[String], checks: &mut Checks) -> Option<String> {
    let flag = &flags.default_provider;
    match (some(flag), providers) {
        (Some(name), _) if providers.contains(&name) => Some(name),
        // A mistake in --cloud-provider is not reported twice.
        (_, []) => None,
        (Some(_), _) => {
            checks.wrong(flag, format_args!("it must be one of --cloud-provider: {}", providers.join(", ")));
            None
        }
        (None, [only]) => Some(only.clone()),
        (None, _) => {
            checks.notice(
                flag,
                "is not set and several clouds run: Services that name no load-balancer class are served by none of \
                 them",
            );
            None
        }
    }
}

/// One cloud has the file that was given last, as in the programs replaced; several have one each.
fn config_files(
    flags: &Flags,
    providers: &[String],
    known: &[&str],
    checks: &mut Checks,
) -> BTreeMap<String, PathBuf> {
    let flag = &flags.cloud_config;
    let mut files = BTreeMap::new();
    for entry in flag.get().0.iter().filter(|entry| !entry.is_empty()) {
        let named = entry.split_once('=').filter(|(name, _)| !name.contains('/'));
        let (provider, path) = match (named, providers) {
            (Some((name, path)), _) if providers.iter().any(|provider| provider == name) => (name, path),
            // A mistake in --cloud-provider is not reported twice.
            (_, []) => continue,
            (Some((name, _)), several) if several.len() > 1 || known.contains(&name) => {
                checks.wrong(
                    flag,
                    format_args!("{name:?} is none of --cloud-provider: {}", providers.join(", ")),
                );
                continue;
            }
            (_, [only]) => (only.as_str(), entry.as_str()),
            _ => {
                checks.wrong(
                    flag,
                    format_args!("several clouds run, so write whose {entry} is: provider={entry}"),
                );
                continue;
            }
        };
        files.insert(provider.to_owned(), PathBuf::from(path));
    }
    // The last one given counts, and an empty one means none.
    if let ([only], Some("")) = (providers, flag.get().0.last().map(String::as_str)) {
        files.remove(only);
    }
    files.retain(|_, path| !path.as_os_str().is_empty());
    files
}

fn classes(flags: &Flags, providers: &[String], checks: &mut Checks) -> BTreeMap<String, String> {
    let flag = &flags.load_balancer_class;
    let mut classes = BTreeMap::new();
    for entry in &flag.get().0 {
        let (provider, class) = match (entry.split_once('='), providers) {
            (Some((provider, class)), _) if providers.iter().any(|other| other == provider) => {
                (provider, class)
            }
            (None, [only]) => (only.as_str(), entry.as_str()),
            // A mistake in --cloud-provider is not reported twice.
            (_, []) => continue,
            (Some((provider, _)), _) => {
                checks.wrong(
                    flag,
                    format_args!("{provider:?} is none of --cloud-provider: {}", providers.join(", ")),
                );
                continue;
            }
            (None, _) => {
                checks.wrong(
                    flag,
                    format_args!("several clouds run, so write whose {entry} is: provider={entry}"),
                );
                continue;
            }
        };
        if !is_class(class) {
            checks.wrong(
                flag,
                format_args!("{class:?} is no load-balancer class; one looks like example.com/name"),
            );
        } else if let Some(other) = classes.insert(class.to_owned(), provider.to_owned())
            && other != provider
        {
            checks.wrong(flag, format_args!("{class} is claimed by both {other} and {provider}"));
        }
    }
    classes
}

/// Whether Kubernetes would let a Service have this class: a name, or a DNS name, a slash and a name.
fn is_class(text: &str) -> bool {
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    let ends_well = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let name_fits = name.len() <= 63
        && ends_well(name)
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    let domain_fits = domain.is_none_or(|domain| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        domain.len() <= 253 && domain.split('.').all(|label| ends_well(label) && label.chars().all(plain))
    });
    name_fits && domain_fits
}

#[cfg(test)]
mod tests {
    use super::{super::tests::options, *};

    fn read(args: &[&str]) -> (Clouds, Vec<String>) {
        let read = options(args);
        (read.options.clouds.clone(), read.texts())
    }

    #[test]
    fn one_or_several_clouds_run() {
        let (clouds, mistakes) = read(&["--cloud-provider=cloudscale"]);
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!(clouds.providers, ["cloudscale"]);
        assert_eq!(clouds.default_provider.as_deref(), Some("cloudscale"));
        assert_eq!((clouds.config_files, clouds.cluster_name.as_str()), (BTreeMap::new(), "kubernetes"));

        let (clouds, mistakes) = read(&["--cloud-provider=cloudscale, binarylane", "--cluster-name=prod"]);
        assert_eq!(mistakes, Vec::<String>::new());
        assert_eq!(clouds.providers, ["cloudscale", "binarylane"]);
        assert_eq!(clouds.default_provider, None);
        assert_eq!(clouds.cluster_name, "prod");

        let (clouds, _) = read(&["--cloud-provider=cloudscale,binarylane", "--default-provider=binarylane"]);
        assert_eq!(clouds.default_provider.as_deref(), Some("binarylane"));
    }

    #[test]
    fn every_mistake_about_clouds_is_named() {
        let all = "binarylane, cloudscale";
        let empty = format!("--cloud-provider cannot be empty; name one or more of {all}");
        let unknown = |name: &str| format!("unknown cloud provider {name:?}; --cloud-provider takes {all}");
        let text = str::to_owned;
        let table: [(&str, &[&str], &[String]); 8] = [
            ("FW-312 not given", &[], std::slice::from_ref(&empty)),
            ("FW-312 empty", &["--cloud-provider="], std::slice::from_ref(&empty)),
            ("unknown", &["--cloud-provider=external"], &[unknown("external")]),
            ("two unknown", &["--cloud-provider=a,cloudscale,b"], &[unknown("a"), unknown("b")]),
            (
                "a gap",
                &["--cloud-provider=cloudscale,"],
                &[text("--cloud-provider is \"cloudscale,\"; there is an empty name between its commas")],
            ),
            (
                "twice",
                &["--cloud-provider=cloudscale,cloudscale"],
                &[text("--cloud-provider is \"cloudscale,cloudscale\"; it names cloudscale twice")],
            ),
            (
                "the default does not run",
                &["--cloud-provider=cloudscale", "--default-provider=binarylane"],
                &[text(
                    "--default-provider is \"binarylane\"; it must be one of --cloud-provider: cloudscale",
                )],
            ),
            (
                "one slip, one mistake",
                &["--default-provider=binarylane", "--load-balancer-class=a/b"],
                std::slice::from_ref(&empty),
            ),
        ];
        for (case, args, want) in table {
            assert_eq!(read(args).1, want, "{case}");
        }
    }

    #[test]
    fn each_cloud_has_a_configuration_file_of_its_own() {
        let one = "--cloud-provider=cloudscale";
        let two = "--cloud-provider=cloudscale,binarylane";
        let read_files = |clouds: &str, files: &[&str]| {
            let files: Vec<_> = files.iter().map(|file| format!("--cloud-config={file}")).collect();
            read(&std::iter::once(clouds).chain(files.iter().map(String::as_str)).collect::<Vec<_>>())
        };
        let good: [(&str, &[&str], Classes<'_>); 9] = [
            (one, &["/etc/cloud"], &[("cloudscale", "/etc/cloud")]),
            (one, &["/etc/a", "/etc/b"], &[("cloudscale", "/etc/b")]),
            (one, &["/etc/a", ""], &[]),
            (one, &["/etc/a=b,c"], &[("cloudscale", "/etc/a=b,c")]),
            (one, &["a=b"], &[("cloudscale", "a=b")]),
            (one, &["cloudscale=/etc/cloud"], &[("cloudscale", "/etc/cloud")]),
            (two, &["binarylane=/b"], &[("binarylane", "/b")]),
            (two, &["binarylane=/b", "cloudscale=/c=1"], &[("binarylane", "/b"), ("cloudscale", "/c=1")]),
            (two, &["binarylane=/b", "cloudscale=/c", "", "binarylane="], &[("cloudscale", "/c")]),
        ];
        for (clouds, files, want) in good {
            let (got, mistakes) = read_files(clouds, files);
            assert_eq!(mistakes, Vec::<String>::new(), "{files:?}");
            let want = want.iter().map(|&(provider, file)| (provider.to_owned(), file.into())).collect();
            assert_eq!(got.config_files, want, "{files:?}");
        }
        let bad = [
            (two, "/etc/cloud", "several clouds run, so write whose /etc/cloud is: provider=/etc/cloud"),
            (two, "/etc/a=b", "several clouds run, so write whose /etc/a=b is: provider=/etc/a=b"),
            (two, "brightbox=/b", "\"brightbox\" is none of --cloud-provider: cloudscale, binarylane"),
            (one, "binarylane=/b", "\"binarylane\" is none of --cloud-provider: cloudscale"),
        ];
        for (clouds, file, want) in bad {
            let want = format!("--cloud-config is \"{file}\"; {want}");
            assert_eq!(read_files(clouds, &[file]).1, [want], "{file}");
        }
        assert_eq!(read(&["--cloud-provider=x", "--cloud-config=/b"]).1.len(), 1, "one slip, one mistake");
    }

    type Classes<'a> = &'a [(&'a str, &'a str)];

    #[test]
    fn classes_belong_to_one_cloud_each() {
        let one = "--cloud-provider=cloudscale";
        let two = "--cloud-provider=cloudscale,binarylane";
        let class = |list: &str| format!("--load-balancer-class={list}");
        let good: [(&str, &str, Classes<'_>); 4] = [
            (one, "example.com/lb", &[("example.com/lb", "cloudscale")]),
            (one, "cloudscale=lb,lb", &[("lb", "cloudscale")]),
            (two, "binarylane=example.com/lb", &[("example.com/lb", "binarylane")]),
            (two, "binarylane=a,cloudscale=b", &[("a", "binarylane"), ("b", "cloudscale")]),
        ];
        for (clouds, list, want) in good {
            let (got, mistakes) = read(&[clouds, &class(list)]);
            assert_eq!(mistakes, Vec::<String>::new(), "{list}");
            let want =
                want.iter().map(|&(class, provider)| (class.to_owned(), provider.to_owned())).collect();
            assert_eq!(got.classes, want, "{list}");
        }
        let bad = [
            (two, "a", "several clouds run, so write whose a is: provider=a"),
            (two, "brightbox=a", "\"brightbox\" is none of --cloud-provider: cloudscale, binarylane"),
            (two, "binarylane=a,cloudscale=a", "a is claimed by both binarylane and cloudscale"),
            (one, "a//b", "\"a//b\" is no load-balancer class; one looks like example.com/name"),
            (one, "A.com/b", "\"A.com/b\" is no load-balancer class; one looks like example.com/name"),
            (one, "cloudscale=", "\"\" is no load-balancer class; one looks like example.com/name"),
        ];
        for (clouds, list, want) in bad {
            let want = format!("--load-balancer-class is \"[{list}]\"; {want}");
            assert_eq!(read(&[clouds, &class(list)]).1, [want], "{list}");
        }
    }

    #[test]
    fn nobody_serving_plain_services_is_said() {
        let notices = options(&["--cloud-provider=cloudscale,binarylane"]).notices;
        assert_eq!(
            notices.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "--default-provider is not set and several clouds run: Services that name no load-balancer class are \
              served by none of them"
            ]
        );
    }
}
