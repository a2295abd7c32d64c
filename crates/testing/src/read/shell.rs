//! The words of a shell command, split as bash splits them.

use super::{ReadError, ReadErrorKind as Kind};

/// Splits a command into words, up to the operator that ends it: `;`, `|`, `&` and the like, standing alone.
pub(super) fn words(command: &str) -> Result<Vec<Vec<u8>>, ReadError> {
    piped(command).map(|(words, _)| words)
}

/// Does the same, and also returns the command after a pipe.
pub(super) fn piped(command: &str) -> Result<(Vec<Vec<u8>>, Option<&str>), ReadError> {
    let mut after = None;
    let mut reader = Reader {
        rest: command,
        word: None,
        words: Vec::new(),
    };
    while let Some(char) = reader.next() {
        match char {
            '\'' => reader.single()?,
            '"' => reader.double()?,
            '$' if reader.rest.starts_with('\'') => {
                reader.next();
                reader.ansi_c()?;
            }
            '$' => reader.dollar()?,
            '`' => return Err(ReadError::new(Kind::Variable)),
            '\\' => match reader.next() {
                Some('\n') | None => {}
                Some('\r') if reader.rest.starts_with('\n') => {
                    reader.next();
                }
                Some(char) => reader.push(char),
            },
            char if char.is_whitespace() => reader.end_word(),
            '|' if reader.word.is_none() => {
                after = Some(reader.rest);
                break;
            }
            ';' | '&' | '>' | '<' if reader.word.is_none() => break,
            char => reader.push(char),
        }
    }
    reader.end_word();
    Ok((reader.words, after))
}

struct Reader<'c> {
    rest: &'c str,
    /// The word that has begun. It may be empty, where it is quoted.
    word: Option<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Reader<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn push(&mut self, char: char) {
        let word = self.word.get_or_insert_default();
        word.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn quoted(&mut self) -> Result<char, ReadError> {
        self.next().ok_or_else(|| ReadError::new(Kind::BadQuoting))
    }

    fn single(&mut self) -> Result<(), ReadError> {
        self.word.get_or_insert_default();
        loop {
            match self.quoted()? {
                '\'' => return Ok(()),
                char => self.push(char),
            }
        }
    }

    fn double(&mut self) -> Result<(), ReadError> {
        self.word.get_or_insert_default();
        loop {
            match self.quoted()? {
                '"' => return Ok(()),
                '`' => return Err(ReadError::new(Kind::Variable)),
                '$' => self.dollar()?,
                '\\' => match self.quoted()? {
                    '\n' => {}
                    char @ ('"' | '\\' | '$' | '`') => self.push(char),
                    char => {
                        self.push('\\');
                        self.push(char);
                    }
                },
                char => self.push(char),
            }
        }
    }

    /// A dollar sign without a special meaning.
    fn dollar(&mut self) -> Result<(), ReadError> {
        let names = |char: char| char.is_ascii_alphanumeric() || "_({@*#?$!-".contains(char);
        if self.rest.starts_with(names) {
            return Err(ReadError::new(Kind::Variable));
        }
        self.push('$');
        Ok(())
    }

    /// `$'…'`: browsers write text in this form when it holds a quote, a line break or a character beyond ASCII.
    fn ansi_c(&mut self) -> Result<(), ReadError> {
        self.word.get_or_insert_default();
        loop {
            match self.quoted()? {
                '\'' => return Ok(()),
                '\\' => self.escape()?,
                char => self.push(char),
            }
        }
    }

    #[allow(clippy::cast_possible_truncation)] // as bash does: the lowest byte of a longer number
    fn escape(&mut self) -> Result<(), ReadError> {
        let byte = match self.quoted()? {
            'a' => 0x07,
            'b' => 0x08,
            'e' | 'E' => 0x1b,
            'f' => 0x0c,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 0x0b,
            'x' => self.number(0, 2, 16) as u8,
            digit @ '0'..='7' => self.number(digit.to_digit(8).unwrap_or_default(), 2, 8) as u8,
            digits @ ('u' | 'U') => {
                let most = if digits == 'u' { 4 } else { 8 };
                let code = self.number(0, most, 16);
                self.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
                return Ok(());
            }
            char @ ('\\' | '\'' | '"' | '?') => {
                self.push(char);
                return Ok(());
            }
            char => {
                self.push('\\');
                self.push(char);
                return Ok(());
            }
        };
        self.word.get_or_insert_default().push(byte);
        Ok(())
    }

    /// Reads the digits that follow, up to this number of them.
    fn number(&mut self, start: u32, most: usize, radix: u32) -> u32 {
        let mut number = start;
        for _ in 0..most {
            let next = self.rest.chars().next();
            let Some(digit) = next.and_then(|char| char.to_digit(radix)) else {
                break;
            };
            number = number.wrapping_mul(radix).wrapping_add(digit);
            self.next();
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const COMMANDS: [&str; 9] = [
        "curl  -H 'a: b'\t\"c d\"",
        "a \\\n  b\\ c 'd'\"e\"f ''",
        r#"'it'\''s' "a\"b\\c\d""#,
        r"$'it\'s \n \u00fc \U0001F600 \x41\xc3\xbc \101 \\ \q'",
        "a$ 'b$c' \"d$ e\"",
        "'zwei\nZeilen' ü",
        "a ; b",
        "a | b",
        "x && y",
    ];

    #[test]
    fn words_are_those_that_bash_sees() {
        for command in &COMMANDS[..6] {
            let script = format!("printf '%s\\0' {command}");
            let bash = Command::new("bash").args(["-c", &script]).output().unwrap();
            let mut expected: Vec<_> = bash.stdout.split(|byte| *byte == 0).collect();
            expected.pop();
            assert_eq!(words(command).unwrap(), expected, "{command}");
        }
    }

    #[test]
    fn a_command_ends_where_another_begins() {
        for command in &COMMANDS[6..9] {
            assert_eq!(words(command).unwrap().len(), 1, "{command}");
        }
    }

    #[test]
    fn what_only_a_shell_knows_is_refused() {
        for (command, kind) in [
            ("'a", Kind::BadQuoting),
            ("\"a", Kind::BadQuoting),
            ("$'a", Kind::BadQuoting),
            ("$'a\\", Kind::BadQuoting),
            ("\"$a\"", Kind::Variable),
            ("$a", Kind::Variable),
            ("\"$(date)\"", Kind::Variable),
            ("`date`", Kind::Variable),
            ("${a}", Kind::Variable),
        ] {
            assert_eq!(words(command).unwrap_err().kind(), kind, "{command}");
        }
    }
}
