//! The container of a manifest, started here as a kubelet would start it there.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{Error, manifests};

/// What the first container of a workload runs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The program.
    pub command: Vec<String>,
    /// Its arguments.
    pub args: Vec<String>,
    env: Vec<Variable>,
    files: Vec<File>,
}

/// A key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    secret: String,
    key: String,
}

/// What a Secret is mounted as.
#[derive(Clone, Debug, PartialEq, Eq)]
struct File {
    path: String,
    of: Key,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    source: Source,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    Text(String),
    Secret { of: Key, optional: bool },
}

impl Container {
    /// The one of the first workload in a manifest.
    pub(crate) fn read(manifest: &str) -> Result<Option<Self>, Error> {
        let mut objects = manifests::parse(manifest)?.into_iter();
        Ok(objects.find_map(|object| Self::of(&object)))
    }

    /// The first one of a workload.
    pub fn of(workload: &Value) -> Option<Self> {
        let pod = workload.pointer("/spec/template/spec")?;
        let container = pod.pointer("/containers/0")?;
        Some(Self {
            command: texts(container, "command"),
            args: texts(container, "args"),
            env: items(container, "env").map(variable).collect(),
            files: items(container, "volumeMounts").flat_map(|mount| files(pod, mount)).collect(),
        })
    }

    /// The Secrets that it uses with the key of each, by the variables that [`Container::env_under`] wants them for.
    pub fn secrets(&self) -> Vec<(&str, &str, &str)> {
        let found = self.env.iter().filter_map(|Variable { name, source }| {
            let Key { secret, key } = match source {
                Source::Secret { of, .. } => of,
                Source::Text(path) => &self.file(path)?.of,
            };
            Some((name.strip_suffix("_FILE").unwrap_or(name), secret.as_str(), key.as_str()))
        });
        found.collect()
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The environment, with the files of its Secrets under `root` instead of `/`. `held` is what the Secrets hold, by the
    /// variables that it is for, and whatever else the program is to see. A variable without a source is an error, and so is
    /// one that names a file which no Secret provides.
    pub fn env_under(&self, root: &Path, held: &[(String, String)]) -> Result<Vec<(String, String)>, Error> {
        let of = |wanted: &str| held.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
        let missing = |name: &str| Error::Manifest(format!("nothing is there for {name}"));
        let mut env = Vec::new();
        for Variable { name, source } in &self.env {
            let value = match (source, name.strip_suffix("_FILE")) {
                (Source::Secret { optional, .. }, _) => match of(name) {
                    None if *optional => continue,
                    value => value.ok_or_else(|| missing(name))?,
                },
                (Source::Text(path), Some(stem)) => {
                    if self.file(path).is_none() {
                        return Err(Error::Manifest(format!("{name} is {path}, where no Secret is mounted")));
                    }
                    let handed = of(name).map(fs::read_to_string).and_then(Result::ok);
                    let secret = of(stem).or(handed).ok_or_else(|| missing(name))?;
                    let here = root.join(path.trim_start_matches('/'));
                    let folder = here.parent().unwrap_or(root);
                    fs::create_dir_all(folder).map_err(Error::io("cannot create", folder))?;
                    fs::write(&here, secret).map_err(Error::io("cannot write", &here))?;
                    here.display().to_string()
                }
                (Source::Text(value), None) => value.clone(),
            };
            env.push((name.clone(), value));
        }
        let known =
            |name: &str| env.iter().any(|(other, _)| other == name || *other == format!("{name}_FILE"));
        let more: Vec<_> = held.iter().filter(|(name, _)| !known(name)).cloned().collect();
        env.extend(more);
        Ok(env)
    }
}

fn items<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    object.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts(object: &Value, field: &str) -> Vec<String> {
    items(object, field).filter_map(|word| Some(word.as_str()?.to_owned())).collect()
}

fn variable(variable: &Value) -> Variable {
    let source = match variable.pointer("/valueFrom/secretKeyRef") {
        Some(secret) => Source::Secret {
            of: key(secret, "/name", secret),
            optional: secret.get("optional").and_then(Value::as_bool).unwrap_or_default(),
        },
        None => Source::Text(text(variable, "/value").to_owned()),
    };
    Variable { name: text(variable, "/name").to_owned(), source }
}

/// A key of a Secret, which is named in one place and the key in another.
fn key(of: &Value, name: &str, item: &Value) -> Key {
    Key { secret: text(of, name).to_owned(), key: text(item, "/key").to_owned() }
}

/// The files that a mounted Secret has. One that is mounted as a single file (`subPath`) is never updated and does not count.
fn files(pod: &Value, mount: &Value) -> Vec<File> {
    let is_it = |volume: &&Value| volume.get("name") == mount.get("name");
    let volume = items(pod, "volumes").find(is_it).filter(|_| mount.get("subPath").is_none());
    let Some(secret) = volume.and_then(|volume| volume.get("secret")) else { return Vec::new() };
    let file = |item| File {
        path: format!("{}/{}", text(mount, "/mountPath"), text(item, "/path")),
        of: key(secret, "/secretName", item),
    };
    items(secret, "items").map(file).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn manifest(more: &str) -> String {
        format!(
            "kind: Role\n---\nspec:\n  template:\n    spec:\n      containers:\n      - command: [cloudberth]\n        \
             args: [manage, --a]\n        env:\n        \
             - {{name: URL, valueFrom: {{secretKeyRef: {{name: s, key: url, optional: true}}}}}}\n        \
             - {{name: TOKEN_FILE, value: /run/cloud/token}}\n        {more}\n        volumeMounts:\n        \
             - {{name: credentials, mountPath: /run/cloud}}\n      volumes:\n      \
             - {{name: credentials, secret: {{secretName: c, items: [{{key: t, path: token}}]}}}}\n"
        )
    }

    fn env(more: &str, held: &[(&str, &str)]) -> Result<Vec<(String, String)>, Error> {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        let call = CALLS.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("cloudberth-container-{}-{call}", std::process::id()));
        let held: Vec<_> =
            held.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let env = Container::read(&manifest(more)).unwrap().unwrap().env_under(&root, &held);
        // The files are as good as what they hold.
        let read = |(name, value): (String, String)| {
            let held =
                value.starts_with('/').then(|| format!("file {}", fs::read_to_string(&value).unwrap()));
            (name, held.unwrap_or(value))
        };
        let env = env.map(|env| env.into_iter().map(read).collect());
        let _ = fs::remove_dir_all(root);
        env
    }

    #[test]
    fn secrets_come_as_files_and_variables() {
        let container = Container::read(&manifest("")).unwrap().unwrap();
        assert_eq!(
            (container.command.join(" "), container.args.join(" ")),
            ("cloudberth".into(), "manage --a".into())
        );
        assert_eq!(container.secrets(), [("URL", "s", "url"), ("TOKEN", "c", "t")]);
        assert_eq!(Container::read("kind: Role\n").unwrap(), None);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let token = pair("TOKEN_FILE", "file s3cr3t");
        assert_eq!(
            env("", &[("TOKEN", "s3cr3t")]).unwrap(),
            std::slice::from_ref(&token),
            "the URL is optional"
        );
        let found =
            env("- {name: FIXED, value: a}", &[("TOKEN", "s3cr3t"), ("URL", "u"), ("MORE", "m")]).unwrap();
        assert_eq!(found, [pair("URL", "u"), token, pair("FIXED", "a"), pair("MORE", "m")]);
    }

    #[test]
    fn what_is_not_there_is_named() {
        let table = [
            ("", "TOKEN_FILE"),
            ("- {name: KEY, valueFrom: {secretKeyRef: {key: k}}}", "KEY"),
            ("- {name: OTHER_FILE, value: /run/other}", "where no Secret is mounted"),
        ];
        for (at, (more, want)) in table.into_iter().enumerate() {
            let held: &[(&str, &str)] = if at == 0 { &[] } else { &[("TOKEN", "t"), ("OTHER", "o")] };
            let why = env(more, held).unwrap_err().to_string();
            assert!(why.contains(want), "{why}");
        }
    }
}
