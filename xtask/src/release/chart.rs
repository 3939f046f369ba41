//! The package of a chart, as `helm package` makes it, but the same bytes for the same files.

use std::path::Path;

use crate::Result;
use crate::archive::{Content, Entry, Tree, gzip, pack};
use crate::image::read_tree;

const IGNORED: &str = ".helmignore";

/// Name and bytes of the package; none if there is no such folder.
pub(crate) fn package(dir: &Path) -> Result<Option<(String, Vec<u8>)>> {
    if !dir.is_dir() {
        return Ok(None);
    }
    let files = read_tree(dir)?;
    let text = |name: &str| match files.get(name).map(|entry| &entry.content) {
        Some(Content::File(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    };
    let chart = text("Chart.yaml");
    let field = |name: &str| {
        let found = chart.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let value =
            found.map(|value| value.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']));
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| format!("{}/Chart.yaml has no {name}", dir.display()))
    };
    let (name, version) = (field("name")?, field("version")?);
    let patterns = text(IGNORED);
    let patterns: Vec<Pattern<'_>> = patterns
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(Pattern::parse)
        .collect::<Result<_>>()?;
    let mut tree = Tree::new();
    for (path, entry) in &files {
        if !patterns.iter().any(|pattern| pattern.matches(path)) {
            let Content::File(bytes) = &entry.content else { continue };
            tree.insert(format!("{name}/{path}"), Entry::file(bytes.clone()));
        }
    }
    Ok(Some((format!("{name}-{version}.tgz"), gzip(&pack(&tree)?)?)))
}

/// A line of `.helmignore`, as far as charts need them: names, folders, and endings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern<'a> {
    /// `tests/`: a folder of this name, and all in it.
    Folder(&'a str),
    /// `*.bak`.
    Ending(&'a str),
    /// `.git`: a file or folder of this name.
    Name(&'a str),
}

impl<'a> Pattern<'a> {
    fn parse(line: &'a str) -> Result<Self> {
        let plain = |text: &'a str| !text.is_empty() && !text.contains(['*', '?', '[', '!', '/']);
        if let Some(folder) = line.strip_suffix('/').filter(|rest| plain(rest)) {
            return Ok(Self::Folder(folder));
        }
        if let Some(ending) = line.strip_prefix('*').filter(|rest| plain(rest)) {
            return Ok(Self::Ending(ending));
        }
        if plain(line) {
            return Ok(Self::Name(line));
        }
        Err(format!("{IGNORED}: {line} is not understood here: use a name, `folder/` or `*.ending`"))
    }

    fn matches(&self, path: &str) -> bool {
        let mut parts: Vec<&str> = path.split('/').collect();
        let file = parts.pop().unwrap_or_default();
        match self {
            Self::Folder(name) => parts.contains(name),
            Self::Ending(ending) => file.ends_with(ending),
            Self::Name(name) => parts.contains(name) || file == *name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{gunzip, unpack};
    use crate::workspace::Sample;

    #[test]
    fn a_chart_is_packed_below_its_name_without_what_is_ignored() {
        let sample = Sample::new(
            "chart",
            &[
                (
                    "c/Chart.yaml",
                    "apiVersion: v2\nname: berth\nversion: \"0.1.0\" # with the program\nappVersion: 0.1.0\n",
                ),
                ("c/values.yaml", "replicas: 2\n"),
                ("c/templates/role.yaml", "kind: Role\n"),
                ("c/tests/role_test.yaml", "suite: role\n"),
                ("c/values.yaml.orig", ""),
                ("c/.helmignore", "# not for users\n.helmignore\ntests/\n*.orig\n"),
            ],
        );
        let dir = sample.workspace.path("c");
        let (name, bytes) = package(&dir).unwrap().unwrap();
        let tree = unpack(&gunzip(&bytes).unwrap()).unwrap();
        let files: Vec<_> = tree.iter().filter(|(_, entry)| entry.content != Content::Directory).collect();
        let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(name, "berth-0.1.0.tgz");
        assert_eq!(names, ["berth/Chart.yaml", "berth/templates/role.yaml", "berth/values.yaml"]);
        assert_eq!(package(&dir).unwrap().unwrap().1, bytes);
        assert_eq!(package(&sample.workspace.path("none")), Ok(None));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for bad in ["a*b", "!keep", "a/b", "*", "/"] {
            assert!(Pattern::parse(bad).unwrap_err().contains(bad), "{bad}");
        }
        let sample = Sample::new("chart bad", &[("Chart.yaml", "name: berth\n")]);
        assert!(package(&sample.workspace.path("")).unwrap_err().contains("has no version"));
    }
}
