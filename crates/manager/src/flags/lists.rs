//! Flags that hold several values.

use std::path::PathBuf;

use super::value::Value;

/// Texts, separated by commas; a flag given again adds to them. A comma or a double quote inside a text is written as
/// in CSV files: `"a,b",c`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Strings(pub Vec<String>);

impl Strings {
    /// These texts.
    pub fn of(texts: &[&str]) -> Self {
        Self(texts.iter().map(|&text| text.to_owned()).collect())
    }
}

impl Value for Strings {
    const TYPE: &'static str = "strings";

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        fields(text).map(Self).ok_or_else(|| {
            "its double quotes do not match; write a value that holds a comma as \"a,b\"".to_owned()
        })
    }

    fn again(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    fn show(&self) -> String {
        let quoted = |text: &String| {
            if text.contains([',', '"', '\n']) || text.starts_with(char::is_whitespace) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.clone()
            }
        };
        format!("[{}]", self.0.iter().map(quoted).collect::<Vec<_>>().join(","))
    }
}

/// The fields of one line of CSV; `None` if its quotes do not match.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        let (field, left) = if let Some(quoted) = rest.strip_prefix('"') {
            quoted_field(quoted)?
        } else {
            let (field, left) =
                rest.split_once(',').map_or((rest, None), |(field, left)| (field, Some(left)));
            if field.contains('"') {
                return None;
            }
            (field.to_owned(), left)
        };
        found.push(field);
        match left {
            Some(left) => rest = left,
            None => return Some(found),
        }
    }
}

/// A field whose opening quote is gone already, and what follows the comma behind it.
fn quoted_field(text: &str) -> Option<(String, Option<&str>)> {
    let mut field = String::new();
    let mut rest = text;
    loop {
        let (part, left) = rest.split_once('"')?;
        field.push_str(part);
        if let Some(more) = left.strip_prefix('"') {
            field.push('"');
            rest = more;
        } else if left.is_empty() {
            return Some((field, None));
        } else {
            return Some((field, Some(left.strip_prefix(',')?)));
        }
    }
}

/// Files, one for each time that the flag is given. A comma belongs to the name of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(pub Vec<String>);

impl Value for Files {
    const TYPE: &'static str = "string";

    fn read(text: &str) -> Result<Self, String> {
        Ok(Self(vec![text.to_owned()]))
    }

    fn again(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    fn show(&self) -> String {
        self.0.join(",")
    }
}

/// Whole numbers, separated by commas; a flag given again adds to them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Int32s(pub Vec<i32>);

impl Value for Int32s {
    const TYPE: &'static str = "int32Slice";

    fn read(text: &str) -> Result<Self, String> {
        let numbers: Result<Vec<i32>, _> =
            text.split(',').filter(|_| !text.is_empty()).map(|part| part.trim().parse()).collect();
        numbers.map(Self).map_err(|_| "it must be whole numbers, separated by commas".to_owned())
    }

    fn again(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    fn show(&self) -> String {
        format!("[{}]", self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

/// A certificate with its key and the host names that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCertKey {
    /// The file with the certificate and its intermediates.
    pub cert: PathBuf,
    /// The file with its private key.
    pub key: PathBuf,
    /// Host names and `*.` patterns; empty: those of the certificate.
    pub names: Vec<String>,
}

/// Certificates for host names, one for each time that the flag is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedCertKeys(pub Vec<NamedCertKey>);

impl Value for NamedCertKeys {
    const TYPE: &'static str = "namedCertKey";

    fn read(text: &str) -> Result<Self, String> {
        let (files, names) =
            text.split_once(':').map_or((text, None), |(files, names)| (files, Some(names.trim())));
        let names: Vec<_> = names
            .map(|names| names.split(',').map(|name| name.trim().to_owned()).collect())
            .unwrap_or_default();
        if names.iter().any(String::is_empty) {
            return Err(
                "there is an empty name behind the colon; leave the colon out to use the certificate's own \
                        names"
                    .to_owned(),
            );
        }
        let files: Vec<_> = files.split(',').map(str::trim).collect();
        match files.as_slice() {
            [cert, key] if !cert.is_empty() && !key.is_empty() => {
                Ok(Self(vec![NamedCertKey { cert: cert.into(), key: key.into(), names }]))
            }
            _ => Err("it must be a certificate file and a key file, separated by a comma, such as \
                      a.crt,a.key:a.example.org"
                .to_owned()),
        }
    }

    fn again(&mut self, next: Self) {
        self.0.extend(next.0);
    }

    fn show(&self) -> String {
        let one = |pair: &NamedCertKey| {
            let files = format!("{},{}", pair.cert.display(), pair.key.display());
            if pair.names.is_empty() { files } else { format!("{files}:{}", pair.names.join(",")) }
        };
        format!("[{}]", self.0.iter().map(one).collect::<Vec<_>>().join(";"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_one_line_of_csv() {
        let table: [(&str, Option<&[&str]>, &str); 10] = [
            ("", Some(&[]), "[]"),
            ("a", Some(&["a"]), "[a]"),
            ("a,b", Some(&["a", "b"]), "[a,b]"),
            ("a,", Some(&["a", ""]), "[a,]"),
            ("\"a,b\",c", Some(&["a,b", "c"]), "[\"a,b\",c]"),
            ("\"say \"\"x\"\"\"", Some(&["say \"x\""]), "[\"say \"\"x\"\"\"]"),
            ("a, b", Some(&["a", " b"]), "[a,\" b\"]"),
            ("a\"b", None, ""),
            ("\"a", None, ""),
            ("\"a\"b,c", None, ""),
        ];
        for (text, want, shown) in table {
            let got = Strings::read(text);
            assert_eq!(got.clone().ok(), want.map(Strings::of), "{text}");
            if let Ok(got) = got {
                assert_eq!(got.show(), shown, "{text}");
            }
        }
    }

    #[test]
    fn files_are_added_up_as_they_are() {
        let mut files = Files::read("/a,b").unwrap();
        assert_eq!(files.show(), "/a,b");
        files.again(Files::read("x=/c").unwrap());
        assert_eq!((files.0.len(), files.show().as_str()), (2, "/a,b,x=/c"));
        assert_eq!(Files::default().show_default(), None);
    }

    #[test]
    fn numbers_are_read_one_by_one() {
        assert_eq!(Int32s::read("29, 23"), Ok(Int32s(vec![29, 23])));
        assert_eq!(Int32s::read(""), Ok(Int32s::default()));
        assert!(Int32s::read("29,").is_err() && Int32s::read("P256").is_err());
        assert_eq!(Int32s(vec![29, 23]).show(), "[29,23]");
    }

    #[test]
    fn certificates_may_name_their_hosts() {
        let pair = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            NamedCertKeys(vec![NamedCertKey { cert: "a.crt".into(), key: "a.key".into(), names }])
        };
        let table = [
            ("a.crt,a.key", Ok(pair(&[]))),
            ("a.crt, a.key : a.org, *.b.org", Ok(pair(&["a.org", "*.b.org"]))),
            ("a.crt,a.key:", Err("empty name")),
            ("a.crt,a.key:a,,b", Err("empty name")),
            ("a.crt", Err("separated by a comma")),
            ("a.crt,", Err("separated by a comma")),
            ("a,b,c", Err("separated by a comma")),
        ];
        for (text, want) in table {
            match (NamedCertKeys::read(text), want) {
                (Ok(got), Ok(want)) => assert_eq!(got, want, "{text}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
                (got, _) => panic!("{text}: {got:?}"),
            }
        }
        let mut two = pair(&[]);
        two.again(pair(&["b"]));
        assert_eq!(two.show(), "[a.crt,a.key;a.crt,a.key:b]");
    }
}
