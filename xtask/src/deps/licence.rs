//! Licence expressions: `MIT OR Apache-2.0`, `(MIT OR Zlib) AND Unicode-3.0`, `Apache-2.0 WITH LLVM-exception`.

/// Whether one can meet the expression with licences that are allowed.
pub(crate) fn allowed(expression: &str, allow: &[String]) -> Result<bool, String> {
    // Before there was an operator for it, people wrote a slash.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut reader = Reader { words: &words, allow };
    let answer = reader.any()?;
    match reader.words.first() {
        None => Ok(answer),
        Some(word) => Err(format!("`{word}` is not expected")),
    }
}

struct Reader<'a> {
    words: &'a [&'a str],
    allow: &'a [String],
}

impl Reader<'_> {
    fn takes(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }

    /// Terms with OR between them.
    fn any(&mut self) -> Result<bool, String> {
        let mut answer = self.all()?;
        while self.takes("OR") {
            answer |= self.all()?;
        }
        Ok(answer)
    }

    /// Terms with AND between them, which bind closer.
    fn all(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.takes("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.takes("(") {
            let answer = self.any()?;
            return if self.takes(")") { Ok(answer) } else { Err("a bracket is not closed".to_owned()) };
        }
        let mut name = self.name()?.to_owned();
        if self.takes("WITH") {
            name = format!("{name} WITH {}", self.name()?);
        }
        Ok(self.allow.contains(&name))
    }

    fn name(&mut self) -> Result<&str, String> {
        let (first, rest) = self.words.split_first().ok_or("it ends too early")?;
        if matches!(*first, "AND" | "OR" | "WITH" | "(" | ")") {
            return Err(format!("`{first}` is not expected"));
        }
        self.words = rest;
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_weighed_as_they_are_meant() {
        let allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Unicode-3.0"].map(str::to_owned);
        let table = [
            ("MIT", Some(true)),
            ("GPL-3.0", Some(false)),
            ("MIT/GPL-3.0", Some(true)),
            ("GPL-3.0 OR MIT", Some(true)),
            ("MIT AND GPL-3.0", Some(false)),
            ("(MIT OR GPL-3.0) AND Unicode-3.0", Some(true)),
            ("MIT OR GPL-3.0 AND LGPL-2.1", Some(true)),
            ("GPL-3.0 AND MIT OR LGPL-2.1", Some(false)),
            ("Apache-2.0 WITH LLVM-exception", Some(true)),
            ("MIT WITH LLVM-exception", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT MIT", None),
            ("OR MIT", None),
        ];
        for (text, expected) in table {
            assert_eq!(allowed(text, &allow).ok(), expected, "{text}");
        }
    }
}
