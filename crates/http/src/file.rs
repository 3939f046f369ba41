//! Small files that a setting names.

use std::{fs::File, io::Read, path::Path};

/// The text of a regular file of at most `limit` bytes, or why it cannot be read.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    // A pipe or a device would block the whole program.
    if !path.metadata().map_err(|why| why.to_string())?.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|why| why.to_string())?;
    file.take(limit + 1).read_to_string(&mut text).map_err(|why| why.to_string())?;
    if text.len() as u64 > limit {
        return Err(format!("it is too long; {limit} bytes are the most"));
    }
    Ok(text)
}
