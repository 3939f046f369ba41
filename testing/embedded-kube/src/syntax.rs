//! Syntax errors in JSON, in the words of Go's scanner, which clients of the API know.

/// Where in a document the scanner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Value,
    /// After `[`: a value or the end.
    FirstElement,
    /// After `{`: a key or the end.
    FirstKey,
    Key,
    Colon,
    AfterPair,
    AfterElement,
    End,
}

/// The first syntax error of a document, if there is one.
pub(crate) fn mistake(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner { rest: text, open: Vec::new() };
    scanner.document().err()
}

struct Scanner<'a> {
    rest: &'a [u8],
    /// Brackets that are still open.
    open: Vec<u8>,
}

type Step<T> = Result<T, String>;

fn wrong(byte: u8, context: &str) -> String {
    let shown = match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        0x80.. => format!("'\\u{byte:04x}'"),
        byte if byte.is_ascii_control() => format!("'{}'", char::from(byte).escape_debug()),
        byte => format!("'{}'", char::from(byte)),
    };
    format!("invalid character {shown} {context}")
}

impl Scanner<'_> {
    fn next(&mut self) -> Step<u8> {
        let (byte, rest) =
            self.rest.split_first().ok_or_else(|| "unexpected end of JSON input".to_owned())?;
        self.rest = rest;
        Ok(*byte)
    }

    fn next_solid(&mut self) -> Step<u8> {
        loop {
            match self.next()? {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                byte => return Ok(byte),
            }
        }
    }

    fn document(&mut self) -> Step<()> {
        let mut place = Place::Value;
        loop {
            if place == Place::End {
                return match self.next_solid() {
                    Ok(byte) => Err(wrong(byte, "after top-level value")),
                    Err(_) => Ok(()),
                };
            }
            let byte = self.next_solid()?;
            place = self.step(place, byte)?;
        }
    }

    fn step(&mut self, place: Place, byte: u8) -> Step<Place> {
        match (place, byte) {
            (Place::FirstElement | Place::AfterElement, b']')
            | (Place::FirstKey | Place::AfterPair, b'}') => Ok(self.close()),
            (Place::Value | Place::FirstElement, byte) => self.value(byte),
            (Place::FirstKey | Place::Key, b'"') => {
                self.string()?;
                Ok(Place::Colon)
            }
            (Place::FirstKey | Place::Key, byte) => {
                Err(wrong(byte, "looking for beginning of object key string"))
            }
            (Place::Colon, b':') | (Place::AfterElement, b',') => Ok(Place::Value),
            (Place::Colon, byte) => Err(wrong(byte, "after object key")),
            (Place::AfterPair, b',') => Ok(Place::Key),
            (Place::AfterPair, byte) => Err(wrong(byte, "after object key:value pair")),
            (Place::AfterElement, byte) => Err(wrong(byte, "after array element")),
            (Place::End, byte) => Err(wrong(byte, "after top-level value")),
        }
    }

    /// What may follow a value, by the bracket that it stands in.
    fn after(&self) -> Place {
        match self.open.last() {
            None => Place::End,
            Some(b'{') => Place::AfterPair,
            Some(_) => Place::AfterElement,
        }
    }

    fn close(&mut self) -> Place {
        self.open.pop();
        self.after()
    }

    fn value(&mut self, byte: u8) -> Step<Place> {
        match byte {
            b'{' | b'[' => {
                self.open.push(byte);
                return Ok(if byte == b'{' { Place::FirstKey } else { Place::FirstElement });
            }
            b'"' => self.string()?,
            b't' => self.literal("true")?,
            b'f' => self.literal("false")?,
            b'n' => self.literal("null")?,
            b'-' => match self.next()? {
                digit @ b'0'..=b'9' => self.number(digit)?,
                byte => return Err(wrong(byte, "in numeric literal")),
            },
            digit @ b'0'..=b'9' => self.number(digit)?,
            byte => return Err(wrong(byte, "looking for beginning of value")),
        }
        Ok(self.after())
    }

    fn literal(&mut self, word: &str) -> Step<()> {
        for wanted in word.bytes().skip(1) {
            let byte = self.next()?;
            if byte != wanted {
                let context = format!("in literal {word} (expecting '{}')", char::from(wanted));
                return Err(wrong(byte, &context));
            }
        }
        Ok(())
    }

    fn digits(&mut self) {
        while let Some((b'0'..=b'9', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    fn number(&mut self, first: u8) -> Step<()> {
        if first != b'0' {
            self.digits();
        }
        if let Some((b'.', rest)) = self.rest.split_first() {
            self.rest = rest;
            match self.next()? {
                b'0'..=b'9' => self.digits(),
                byte => return Err(wrong(byte, "after decimal point in numeric literal")),
            }
        }
        if let Some((b'e' | b'E', rest)) = self.rest.split_first() {
            self.rest = rest;
            let byte = match self.next()? {
                b'+' | b'-' => self.next()?,
                byte => byte,
            };
            match byte {
                b'0'..=b'9' => self.digits(),
                byte => return Err(wrong(byte, "in exponent of numeric literal")),
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Step<()> {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next()? {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next()?;
                            if !byte.is_ascii_hexdigit() {
                                return Err(wrong(byte, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    byte => return Err(wrong(byte, "in string escape code")),
                },
                byte if byte < 0x20 => return Err(wrong(byte, "in string literal")),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named_as_go_names_them() {
        let table = [
            ("{\"a\": [1, -2.5e+3, \"x\\u00e9\"], \"b\": {}, \"c\": null}", None),
            (" [] ", None),
            ("", Some("unexpected end of JSON input")),
            ("{\"a\": ", Some("unexpected end of JSON input")),
            ("not json", Some("invalid character 'o' in literal null (expecting 'u')")),
            ("x", Some("invalid character 'x' looking for beginning of value")),
            ("{a: 1}", Some("invalid character 'a' looking for beginning of object key string")),
            ("{\"a\" 1}", Some("invalid character '1' after object key")),
            ("{\"a\": 1 \"b\"}", Some("invalid character '\"' after object key:value pair")),
            ("{\"a\": 1,}", Some("invalid character '}' looking for beginning of object key string")),
            ("[1 2]", Some("invalid character '2' after array element")),
            ("{} x", Some("invalid character 'x' after top-level value")),
            ("[-x]", Some("invalid character 'x' in numeric literal")),
            ("[1.x]", Some("invalid character 'x' after decimal point in numeric literal")),
            ("[1e]", Some("invalid character ']' in exponent of numeric literal")),
            ("\"\\q\"", Some("invalid character 'q' in string escape code")),
            ("\"\n\"", Some("invalid character '\\n' in string literal")),
        ];
        for (text, want) in table {
            assert_eq!(mistake(text.as_bytes()).as_deref(), want, "{text}");
        }
    }
}
