//! What is wrong with an inventory file.

use std::fmt;

use cloudberth_http::yaml::Mistake;

/// One thing that is wrong, as it is shown everywhere: `FILE:LINE: FIELD: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The path of the field; `file` if it is about the whole file.
    pub field: String,
    /// What is wrong, with the offending value.
    pub message: String,
}

impl Fault {
    /// A fault of the file as a whole.
    pub(crate) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: 1, field: "file".to_owned(), message: message.into() }
    }

    pub(crate) fn from_mistake(file: &str, mistake: Mistake) -> Self {
        let Mistake { line, field, text } = mistake;
        let field = if field.is_empty() { "file".to_owned() } else { field };
        Self { file: file.to_owned(), line: line.max(1), field, message: text }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, field, message } = self;
        write!(f, "{file}:{line}: {field}: {message}")
    }
}

/// Everything that is wrong with a file, one fault a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<Fault>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, fault) in self.0.iter().enumerate() {
            let gap = if at == 0 { "" } else { "\n" };
            write!(f, "{gap}{fault}")?;
        }
        Ok(())
    }
}
