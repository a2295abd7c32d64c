//! Splits a text into tokens, and finds how the text ends.

use std::ops::Range;

/// The greatest depth of a body that is examined: sorting is recursive.
const MAX_DEPTH: usize = 127;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An opening bracket, with the index of the token that closes it.
    Open(usize),
    Close,
    Comma,
    Colon,
    Text,
    Number,
    Word,
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Range<usize>,
}

pub(super) enum Ending {
    Whole,
    /// The text breaks off; with these bytes after it, it would be complete.
    Short(Vec<u8>),
    Wrong,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrClose,
    Key,
    KeyOrClose,
    Colon,
    CommaOrClose,
    End,
}

/// One walk over a text.
pub(super) struct Walk<'b> {
    source: &'b [u8],
    at: usize,
    tokens: Vec<Token>,
    /// The tokens of the brackets that are open.
    open: Vec<usize>,
    expected: Expected,
}

impl<'b> Walk<'b> {
    pub(super) fn over(source: &'b [u8]) -> (Vec<Token>, Ending) {
        let mut walk = Self {
            source,
            at: 0,
            tokens: Vec::new(),
            open: Vec::new(),
            expected: Expected::Value,
        };
        let ending = loop {
            while matches!(source.get(walk.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                walk.at += 1;
            }
            let Some(&byte) = source.get(walk.at) else {
                break walk.at_end();
            };
            if walk.token(byte).is_none() {
                break walk.at_odds(byte);
            }
        };
        (walk.tokens, ending)
    }

    fn token(&mut self, byte: u8) -> Option<()> {
        use Expected as E;
        let takes_value = matches!(self.expected, E::Value | E::ValueOrClose);
        let takes_key = matches!(self.expected, E::Key | E::KeyOrClose);
        let start = self.at;
        match byte {
            b'{' | b'[' if takes_value && self.open.len() < MAX_DEPTH => {
                self.open.push(self.tokens.len());
                self.push(Kind::Open(0), 1);
                self.expected = if byte == b'{' {
                    E::KeyOrClose
                } else {
                    E::ValueOrClose
                };
            }
            b'}' | b']' if self.may_close(byte) => {
                let open = self.open.pop()?;
                let close = self.tokens.len();
                self.tokens.get_mut(open)?.kind = Kind::Open(close);
                self.push(Kind::Close, 1);
                self.value_done();
            }
            b',' if self.expected == E::CommaOrClose => {
                self.push(Kind::Comma, 1);
                self.expected = if self.in_object()? { E::Key } else { E::Value };
            }
            b':' if self.expected == E::Colon => {
                self.push(Kind::Colon, 1);
                self.expected = E::Value;
            }
            b'"' if takes_value || takes_key => {
                let length = string_length(self.source.get(start..)?)?;
                self.push(Kind::Text, length);
                if takes_key {
                    self.expected = E::Colon;
                } else {
                    self.value_done();
                }
            }
            b'-' | b'0'..=b'9' if takes_value => {
                let length = self.run(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
                self.push(Kind::Number, length);
                self.value_done();
            }
            b'a'..=b'z' | b'A'..=b'Z' if takes_value => {
                let length = self.run(|byte| byte.is_ascii_alphabetic());
                let word = self.source.get(start..start + length)?;
                [b"true".as_slice(), b"false", b"null"]
                    .contains(&word)
                    .then_some(())?;
                self.push(Kind::Word, length);
                self.value_done();
            }
            _ => return None,
        }
        Some(())
    }

    fn run(&self, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.source.get(self.at..).unwrap_or_default();
        rest.iter().take_while(|byte| belongs(**byte)).count()
    }

    fn push(&mut self, kind: Kind, length: usize) {
        let at = self.at..self.at + length;
        self.at = at.end;
        self.tokens.push(Token { kind, at });
    }

    fn value_done(&mut self) {
        self.expected = match self.open.is_empty() {
            true => Expected::End,
            false => Expected::CommaOrClose,
        };
    }

    fn in_object(&self) -> Option<bool> {
        let open = self.tokens.get(*self.open.last()?)?;
        Some(self.source.get(open.at.start) == Some(&b'{'))
    }

    fn may_close(&self, byte: u8) -> bool {
        let fits = self.in_object() == Some(byte == b'}');
        fits && match self.expected {
            Expected::CommaOrClose => true,
            Expected::KeyOrClose => byte == b'}',
            Expected::ValueOrClose => byte == b']',
            _ => false,
        }
    }

    fn at_end(&self) -> Ending {
        match self.expected {
            Expected::End => Ending::Whole,
            Expected::CommaOrClose | Expected::KeyOrClose | Expected::ValueOrClose => {
                Ending::Short(self.closers())
            }
            _ => Ending::Wrong,
        }
    }

    /// A body may break off in a string without an end, where the string is a value.
    fn at_odds(&mut self, byte: u8) -> Ending {
        let takes_value = matches!(self.expected, Expected::Value | Expected::ValueOrClose);
        let rest = self.source.get(self.at..).unwrap_or_default();
        if byte == b'"' && takes_value && string_length(rest).is_none() {
            let mut tail = b"\"".to_vec();
            tail.append(&mut self.closers());
            return Ending::Short(tail);
        }
        Ending::Wrong
    }

    fn closers(&self) -> Vec<u8> {
        let opening = |index: &usize| {
            let at = self.tokens.get(*index).map(|token| token.at.start);
            at.and_then(|at| self.source.get(at)).copied()
        };
        let closing = |open: Option<u8>| if open == Some(b'{') { b'}' } else { b']' };
        self.open
            .iter()
            .rev()
            .map(|index| closing(opening(index)))
            .collect()
    }
}

/// Returns the length with both quotes; `None` where the string has no end.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
