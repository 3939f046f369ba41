//! Environment variables as a value that is handed in, so that only the binary reads the real ones.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use cloudberth_core::{
    error::{Context, Error, Result},
    secret::Secret,
};

/// Environment variables. An empty one counts as not set. `Debug` shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Env(BTreeMap<String, String>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Text(Secret),
    /// The variable names the file that holds it. The file is read again when it changes.
    File(PathBuf),
}

impl Env {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
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
        assert_eq!(env.get("HOME"), Some("/root"));
    }
}
