//! The ustar format, written and read: directories, files and symbolic links that belong to root and are from 1970.

use std::collections::BTreeMap;

use crate::Result;

const BLOCK: usize = 512;
/// A mode that only a directory for everybody has.
pub(crate) const EVERYBODYS: u32 = 0o1777;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Directory,
    File(Vec<u8>),
    /// A symbolic link, with where it leads.
    Link(String),
}

/// What is at a path, and who may do what with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: u32,
    pub(crate) content: Content,
}

impl Entry {
    pub(crate) fn directory() -> Self {
        Self { mode: 0o755, content: Content::Directory }
    }

    pub(crate) fn for_everybody() -> Self {
        Self { mode: EVERYBODYS, content: Content::Directory }
    }

    pub(crate) fn file(bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o644, content: Content::File(bytes.into()) }
    }

    pub(crate) fn program(bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, content: Content::File(bytes.into()) }
    }

    pub(crate) fn link(to: &str) -> Self {
        Self { mode: 0o777, content: Content::Link(to.to_owned()) }
    }
}

/// Entries by path, without a slash at either end. A directory comes before what is in it, because its name is shorter.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// The archive of a tree. The directories above an entry need not be listed: they are made.
pub(crate) fn pack(tree: &Tree) -> Result<Vec<u8>> {
    let mut whole = tree.clone();
    for path in tree.keys() {
        for (at, _) in path.match_indices('/') {
            let above = path.get(..at).unwrap_or_default();
            whole.entry(above.to_owned()).or_insert_with(Entry::directory);
        }
    }
    let mut archive = Vec::new();
    for (path, entry) in &whole {
        let (kind, name, target, bytes): (_, _, &str, &[u8]) = match &entry.content {
            Content::Directory => (b'5', format!("{path}/"), "", &[]),
            Content::File(bytes) => (b'0', path.clone(), "", bytes),
            Content::Link(target) => (b'2', path.clone(), target, &[]),
        };
        archive.extend(header(&name, entry.mode, kind, target, bytes.len())?);
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    Ok(archive)
}

fn header(path: &str, mode: u32, kind: u8, target: &str, size: usize) -> Result<Vec<u8>> {
    let (prefix, name) = split(path).ok_or_else(|| format!("{path} is too long for a tar archive"))?;
    if target.len() > 100 {
        return Err(format!("{target}, to which {path} leads, is too long for a tar archive"));
    }
    let mut block = Vec::with_capacity(BLOCK);
    let mut field = |text: &str, width: usize| {
        block.extend(text.bytes());
        block.resize(block.len() + width.saturating_sub(text.len()), 0);
    };
    field(name, 100);
    field(&format!("{mode:07o}"), 8);
    field("0000000", 8);
    field("0000000", 8);
    field(&format!("{size:011o}"), 12);
    field("00000000000", 12);
    // While the sum is computed, its own field is blank.
    field("        ", 8);
    field(&char::from(kind).to_string(), 1);
    field(target, 100);
    field("ustar", 6);
    field("00", 2);
    field("root", 32);
    field("root", 32);
    field("0000000", 8);
    field("0000000", 8);
    field(prefix, 155);
    field("", 12);
    if block.len() != BLOCK {
        return Err(format!("{path}: {size} bytes are too many for a tar archive"));
    }
    let sum = format!("{:06o}\0 ", sum(&block));
    block.splice(148..156, sum.into_bytes());
    Ok(block)
}

fn sum(block: &[u8]) -> u32 {
    block.iter().map(|byte| u32::from(*byte)).sum()
}

/// A long path is split at a slash, with up to 155 bytes before it and 100 after it.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let slashes = path.match_indices('/').map(|(at, _)| (path.get(..at), path.get(at + 1..)));
    slashes
        .filter_map(|(prefix, name)| Some((prefix?, name?)))
        .find(|(prefix, name)| !prefix.is_empty() && prefix.len() <= 155 && (1..=100).contains(&name.len()))
}

/// The tree of an archive that [`pack`] wrote, or another one of the same kind. Owner and times are not looked at.
pub(crate) fn unpack(archive: &[u8]) -> Result<Tree> {
    let mut tree = Tree::new();
    let mut rest = archive;
    loop {
        let block = rest.get(..BLOCK).ok_or("the tar archive is cut off")?;
        if block.iter().all(|byte| *byte == 0) {
            return Ok(tree);
        }
        let number = |from: usize, to: usize| {
            usize::from_str_radix(&text(block, from, to), 8)
                .map_err(|_| format!("the tar archive has no number at {from} of a header"))
        };
        let mut blank = block.to_vec();
        blank.splice(148..156, [b' '; 8]);
        let (prefix, name) = (text(block, 345, 500), text(block, 0, 100));
        let path = if prefix.is_empty() { name } else { format!("{prefix}/{name}") };
        if number(148, 156)? != sum(&blank) as usize {
            return Err(format!("{path}: the sum of its tar header is wrong"));
        }
        let size = number(124, 136)?;
        let bytes = rest.get(BLOCK..BLOCK + size).ok_or_else(|| format!("{path} is cut off"))?;
        let content = match block.get(156) {
            Some(b'0' | 0) => Content::File(bytes.to_vec()),
            Some(b'2') => Content::Link(text(block, 157, 257)),
            Some(b'5') => Content::Directory,
            other => return Err(format!("{path}: a tar entry of kind {other:?} is not known here")),
        };
        let mode = u32::try_from(number(100, 108)?).unwrap_or_default();
        tree.insert(path.trim_end_matches('/').to_owned(), Entry { mode, content });
        rest = rest.get(BLOCK + size.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
}

/// A field of a header, up to its first zero, without blanks.
fn text(block: &[u8], from: usize, to: usize) -> String {
    let field = block.get(from..to).unwrap_or_default();
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(field.get(..end).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sample() -> Tree {
        let deep = format!("{}/{}/file", "a".repeat(90), "b".repeat(60));
        Tree::from([
            ("bin/program".to_owned(), Entry::program(vec![7; 1000])),
            ("bin/other".to_owned(), Entry::link("program")),
            ("etc/empty".to_owned(), Entry::file("")),
            ("etc/block".to_owned(), Entry::file(vec![b'x'; BLOCK])),
            ("tmp".to_owned(), Entry::for_everybody()),
            (deep, Entry::file("deep\n")),
        ])
    }

    #[test]
    fn what_is_packed_comes_back_with_the_directories_above_it() {
        let tree = sample();
        let back = unpack(&pack(&tree).unwrap()).unwrap();
        for (path, entry) in &tree {
            assert_eq!(back.get(path), Some(entry), "{path}");
        }
        let made: Vec<_> = back.keys().filter(|path| !tree.contains_key(*path)).collect();
        assert_eq!(made.len(), 4, "{made:?}");
        assert_eq!(back.get("bin"), Some(&Entry::directory()));
    }

    #[test]
    fn the_order_and_the_bytes_follow_from_the_content_alone() {
        let archive = pack(&sample()).unwrap();
        assert_eq!(archive, pack(&sample().into_iter().rev().collect()).unwrap());
        assert_eq!(archive.len() % BLOCK, 0);
        assert_eq!(archive.get(136..147), Some(&b"00000000000"[..]), "the time of the first entry");
    }

    #[test]
    fn a_damaged_archive_is_refused() {
        let archive = pack(&sample()).unwrap();
        assert!(unpack(archive.get(..700).unwrap()).unwrap_err().contains("cut off"));
        let mut damaged = archive;
        damaged[0] ^= 1;
        assert!(unpack(&damaged).unwrap_err().contains("sum"));
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        let long = "x".repeat(101);
        let tree = Tree::from([(long.clone(), Entry::file(""))]);
        assert_eq!(pack(&tree).unwrap_err(), format!("{long} is too long for a tar archive"));
        let tree = Tree::from([("link".to_owned(), Entry::link(&long))]);
        assert!(pack(&tree).unwrap_err().contains("to which link leads"));
    }

    /// The tar program of the system reads it too.
    #[test]
    fn tar_lists_what_was_packed() {
        let sample = crate::workspace::Sample::new("tar", &[]);
        let file = sample.workspace.path("sample.tar");
        crate::archive::write(&file, &pack(&self::sample()).unwrap()).unwrap();
        let ran = Command::new("tar").arg("-tvf").arg(&file).env("TZ", "UTC").output().unwrap();
        let text = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
        assert!(text.contains("drwxrwxrwt root/root") && text.contains("bin/other -> program"), "{text}");
        assert!(text.lines().all(|line| line.contains("1970-01-01 00:00")), "{text}");
    }
}
