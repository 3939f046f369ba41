//! The file of `--cloud-config`: YAML, every field optional, every mistake reported.

use std::path::PathBuf;

use cloudberth_core::Secret;
use cloudberth_http::yaml::Fields;

use super::NodeSettings;
use crate::annotations;

/// What the file says. Nothing in it has to be set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileSettings {
    /// The token itself.
    pub api_token: Option<Secret>,
    /// The file that holds the token.
    pub api_token_file: Option<PathBuf>,
    pub(super) api_url: Option<String>,
    pub(super) allow_insecure_api_url: bool,
    pub(super) region: Option<String>,
    pub(super) vpc: Option<i64>,
    pub(super) name_prefix: Option<String>,
    pub(super) health_check_path: Option<String>,
    pub(super) nodes: NodeSettings,
    pub(super) routes: Option<bool>,
}

impl FileSettings {
    /// Reads all fields. It never gives up early, so that every mistake is found.
    pub fn read(file: &mut Fields<'_>) -> Option<Self> {
        let mut settings = Self {
            api_token: file.optional("apiToken").secret(),
            api_token_file: file.optional("apiTokenFile").text().map(PathBuf::from),
            api_url: file.optional("apiUrl").text(),
            allow_insecure_api_url: file.optional("allowInsecureApiUrl").boolean().unwrap_or_default(),
            region: file.optional("region").text(),
            vpc: file.optional("vpcId").integer(1..=i64::MAX),
            ..Self::default()
        };
        let balancers = file.optional("loadBalancer");
        balancers.fields(|fields| {
            settings.name_prefix = fields.optional("namePrefix").parse(name_prefix);
            settings.health_check_path = fields.optional("defaultHealthCheckPath").parse(path);
            Some(())
        });
        file.optional("nodes").fields(|fields| {
            let mut flag = |name| fields.optional(name).boolean().unwrap_or_default();
            settings.nodes = NodeSettings {
                include_private_without_vpc: flag("includePrivateWithoutVpc"),
                cancelled_is_gone: flag("cancelledIsGone"),
                ask_whether_running: flag("askWhetherRunning"),
            };
            Some(())
        });
        file.optional("routes").fields(|fields| {
            settings.routes = fields.optional("enabled").boolean();
            Some(())
        });
        if settings.api_token.is_some() && settings.api_token_file.is_some() {
            file.optional("apiTokenFile").wrong("apiToken is set too; set one of them only");
        }
        Some(settings)
    }
}

/// A prefix is the beginning of a host name, short enough to leave room for the rest.
fn name_prefix(text: &str) -> Result<String, &'static str> {
    let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    let edges = !text.starts_with('-') && !text.ends_with('-') && !text.is_empty();
    if edges && text.len() <= 20 && text.bytes().all(fits) {
        Ok(text.to_owned())
    } else {
        Err("it must be at most 20 lower-case letters, digits and dashes, with no dash at either end")
    }
}

fn path(text: &str) -> Result<String, &'static str> {
    if annotations::is_path(text) { Ok(text.to_owned()) } else { Err(annotations::A_PATH) }
}

#[cfg(test)]
mod tests {
    use cloudberth_http::yaml;

    use super::*;

    #[test]
    fn every_mistake_is_reported_with_its_line_and_no_secret() {
        let text = "apiToken: [s3cr3t]\nregoin: syd\nvpcId: 0\nloadBalancer:\n  namePrefix: Bad_\n  \
                    defaultHealthCheckPath: health\nnodes: {cancelled: true}\nroutes: {enabled: yes}\n";
        let wrong = yaml::read(text, FileSettings::read).unwrap_err();
        let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
        let starts = [
            "line 1, field apiToken: ",
            "line 2, field regoin: there is no such field; did you mean region?",
            "line 3, field vpcId: ",
            "line 5, field loadBalancer.namePrefix: ",
            "line 6, field loadBalancer.defaultHealthCheckPath: ",
            "line 7, field nodes.cancelled: there is no such field",
            "line 8, field routes.enabled: ",
        ];
        assert_eq!(wrong.len(), starts.len(), "BL-9 {wrong:?}");
        for (said, start) in wrong.iter().zip(starts) {
            assert!(said.starts_with(start) && !said.contains("s3cr3t"), "BL-9 L10-1601 {said}");
        }
        let both = yaml::read("apiToken: a\napiTokenFile: b\n", FileSettings::read).unwrap_err();
        assert!(both[0].to_string().contains("apiToken is set too"), "{both:?}");
        let token = yaml::read("apiToken: s3cr3t\n", FileSettings::read).unwrap();
        assert!(!format!("{token:?}").contains("s3cr3t"), "L10-1602");
        for prefix in ["-a", "a-", "", "a_b", "A", "abcdefghijklmnopqrstu"] {
            assert!(name_prefix(prefix).is_err(), "{prefix:?}");
        }
        assert_eq!(name_prefix("lb-1").as_deref(), Ok("lb-1"));
    }
}
