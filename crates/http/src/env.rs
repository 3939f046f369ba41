//! Environment variables as a value that is handed in, so that only the binary reads the real ones.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use cloudberth_core::{
    error::{Context, Error, Result},
    secret::Secret,
};

/// Environment variables. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

/// One environment variable. `Debug` does not show its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Variable<'a> {
    /// There is none of this name.
    Unset,
    /// There is one, and it is empty.
    Empty,
    /// Its value, which is not empty.
    Set(&'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Text(Secret),
    /// The variable names the file that holds it. The file is read again when it changes.
    File(PathBuf),
}

impl Env {
    /// The variable of this name.
    pub fn variable(&self, name: &str) -> Variable<'_> {
        match self.0.get(name).map(String::as_str) {
            None => Variable::Unset,
            Some("") => Variable::Empty,
            Some(value) => Variable::Set(value),
        }
    }

    /// The value of a variable, where an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        match self.variable(name) {
            Variable::Unset | Variable::Empty => None,
            Variable::Set(value) => Some(value),
        }
    }

    /// These variables, with others laid over them: an empty value takes the variable away, and so does any value for the
    /// variable of that name followed by `_FILE`, which would say the same thing again.
    #[must_use]
    pub fn overlaid(&self, over: &[(&str, &str)]) -> Self {
        let mut all = self.0.clone();
        for (name, value) in over {
            all.remove(&format!("{name}_FILE"));
            all.insert((*name).to_owned(), (*value).to_owned());
        }
        all.retain(|_, value| !value.is_empty());
        Self(all)
    }

    /// The name and the value of the first of several variables that is set and not empty.
    pub fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.get(name)?)))
    }

    /// Whether the variable `name` holds only white space, and no file is named instead.
    pub(crate) fn is_blank(&self, name: &str) -> bool {
        self.get(name).is_some_and(|text| text.trim().is_empty())
            && self.get(&format!("{name}_FILE")).is_none()
    }

    /// The token that the variable `name` holds, or whose file the variable `name` followed by `_FILE` names. Both at
    /// once are refused, because only one of them would be kept up to date.
    pub(crate) fn token(&self, name: &str) -> Result<Option<Token>> {
        let file = format!("{name}_FILE");
        match (self.get(name), self.get(&file)) {
            (None, None) => Ok(None),
            (Some(text), None) => Secret::new(text).context(name).map(|secret| Some(Token::Text(secret))),
            (None, Some(path)) => Ok(Some(Token::File(path.into()))),
            (Some(_), Some(_)) => {
                Err(Error::user_input(format!("{name} and {file} are both set; set one of them only")))
            }
        }
    }
}

impl fmt::Debug for Variable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unset => "Unset",
            Self::Empty => "Empty",
            Self::Set(_) => "Set(..)",
        })
    }
}

impl FromIterator<(String, String)> for Env {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables<'a> = &'a [(&'a str, &'a str)];

    fn env(variables: Variables<'_>) -> Env {
        variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn a_token_stands_in_a_variable_or_in_a_file() {
        let text = |text: &str| Ok(Some(Token::Text(Secret::new(text).unwrap())));
        let wrong = |text: &str| Err(Error::user_input(text));
        let table: [(Variables<'_>, Result<Option<Token>>); 8] = [
            (&[], Ok(None)),
            (&[("X_TOKEN", "")], Ok(None)),
            (&[("X_TOKEN", "s3cr3t\n")], text("s3cr3t")),
            (&[("X_TOKEN_FILE", "/run/token")], Ok(Some(Token::File("/run/token".into())))),
            (&[("X_TOKEN", "s3cr3t"), ("X_TOKEN_FILE", "")], text("s3cr3t")),
            (
                &[("X_TOKEN", "a"), ("X_TOKEN_FILE", "b")],
                wrong("X_TOKEN and X_TOKEN_FILE are both set; set one of them only"),
            ),
            (&[("X_TOKEN", " ")], wrong("X_TOKEN: the token is empty")),
            (&[("Y_TOKEN", "s3cr3t")], Ok(None)),
        ];
        for (variables, want) in table {
            assert_eq!(env(variables).token("X_TOKEN"), want, "{variables:?}");
        }
    }

    #[test]
    fn values_are_never_shown() {
        let env = env(&[("X_TOKEN", "s3cr3t"), ("HOME", "/root")]);
        assert_eq!(format!("{env:?}"), "{\"HOME\", \"X_TOKEN\"}", "L10-601");
        assert!(!format!("{:?}", env.token("X_TOKEN")).contains("s3cr3t"), "L10-602");
        assert!(!format!("{:?}", env.variable("X_TOKEN")).contains("s3cr3t"), "L10-1507");
        assert_eq!(env.get("HOME"), Some("/root"));
    }

    #[test]
    fn what_is_laid_over_counts_alone() {
        let real = env(&[("X_TOKEN_FILE", "/run/token"), ("X_URL", "https://x"), ("X_REGION", "syd")]);
        let laid = real.overlaid(&[("X_TOKEN", "offline"), ("X_URL", "")]);
        assert_eq!(laid, env(&[("X_TOKEN", "offline"), ("X_REGION", "syd")]));
    }

    #[test]
    fn empty_is_not_unset_and_the_first_of_several_counts() {
        let env = env(&[("EMPTY", ""), ("ONE", "1"), ("TWO", "2")]);
        let table = [("EMPTY", Variable::Empty), ("ONE", Variable::Set("1")), ("NONE", Variable::Unset)];
        for (name, want) in table {
            assert_eq!(env.variable(name), want, "{name}");
        }
        assert_eq!((env.get("EMPTY"), env.get("NONE")), (None, None));
        assert_eq!(env.first(&["NONE", "EMPTY", "TWO", "ONE"]), Some(("TWO", "2")));
        assert_eq!(env.first(&["NONE", "EMPTY"]), None);
    }
}
