//! Parser of the template language: one template per line. Lists of numbers expand it into several rules.
//!
//! ```text
//! line   = [modifier+ ":"] [name "="] part ("&" part)*         modifier = edge | pad | absent
//! part   = "bias" | "first" | "last" | column "[" numbers "]" ("." call)*
//! call   = function ["(" arguments ")"] | test ["(" arguments ")"] "?"
//! numbers = number [".." number] ("," ...)*                    arguments = numbers | strings
//! ```

use crate::error::{Error, Result};
use crate::features::class_table::Cut;
use crate::features::rule::{Atom, Draft};
use crate::features::template::Derived;
use crate::features::text::{Frequent, Function, Test};
use std::sync::Arc;

/// Maximum number of rules that one line may expand to.
const MAX_RULES: usize = 10_000;
const FUNCTIONS: &str = "prefix(n), suffix(n), lower, digits, shape, short_shape, length, initial, cut(n)";
const TESTS: &str = "is_capitalized?, is_upper?, is_lower?, is_title?, is_digit?, is_alpha?, is_alnum?, is_punct?, \
                     is_number?, has_upper?, has_digit?, has_letter?, has_hyphen?, has_dot?, longer_than(n)?, starts_with(\"x\")?, \
                     ends_with(\"x\")?, contains(\"x\")?, one_of(\"x\", \"y\")?, is_rare(n)?, is_frequent(n)?";

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Text(String),
    Number(i64),
    Sign(char),
    Range,
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Name(s) => write!(f, "{s:?}"),
            Token::Text(s) => write!(f, "the string {s:?}"),
            Token::Number(n) => write!(f, "{n}"),
            Token::Sign(c) => write!(f, "{c:?}"),
            Token::Range => write!(f, "\"..\""),
        }
    }
}

pub(crate) fn parse(text: &str, columns: &[String], derived: &[Derived]) -> Result<Vec<Draft>> {
    let mut drafts = Vec::new();
    let mut pad = false;
    for (i, line) in text.lines().enumerate() {
        let in_line = |what| Error::Template(format!("line {}: {what}", i + 1));
        let tokens = tokenize(line).map_err(in_line)?;
        if !tokens.is_empty() {
            let mut reader = Reader { tokens: &tokens, at: 0, columns, derived, pad: &mut pad };
            reader.line(&mut drafts).map_err(in_line)?;
        }
    }
    Ok(drafts)
}

type Parsed<T> = std::result::Result<T, String>;

fn tokenize(line: &str) -> Parsed<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_whitespace() || c == '\u{feff}' {
            chars.next();
        } else if c == '#' {
            break;
        } else if c.is_alphabetic() || c == '_' {
            let mut name = String::new();
            while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
                name.push(c);
            }
            tokens.push(Token::Name(name));
        } else if c.is_ascii_digit() || c == '-' || c == '+' {
            chars.next();
            let mut digits = String::from(c);
            while let Some(c) = chars.next_if(char::is_ascii_digit) {
                digits.push(c);
            }
            let number = digits.parse().ok().filter(|n: &i64| (-10_000..=10_000).contains(n));
            tokens.push(Token::Number(
                number.ok_or_else(|| format!("{digits:?} is not a whole number between -10000 and 10000"))?,
            ));
        } else if c == '"' {
            chars.next();
            let mut string = String::new();
            loop {
                match chars.next() {
                    Some('"') => break,
                    Some('\\') => match chars.next() {
                        Some(c @ ('"' | '\\')) => string.push(c),
                        _ => return Err("a backslash in a string must stand before \" or \\".into()),
                    },
                    Some(c) => string.push(c),
                    None => return Err(format!("the string \"{string} does not end; close it with \"")),
                }
            }
            tokens.push(Token::Text(string));
        } else if c == '.' {
            chars.next();
            tokens.push(if chars.next_if_eq(&'.').is_some() { Token::Range } else { Token::Sign('.') });
        } else if "[](),&:=?".contains(c) {
            chars.next();
            tokens.push(Token::Sign(c));
        } else {
            return Err(format!(
                "unexpected character {c:?}; put column names and strings that hold it in double quotes"
            ));
        }
    }
    Ok(tokens)
}

/// One expansion of a part: its atom, offset and label, and the numbers chosen from lists.
#[derive(Clone)]
struct Expansion {
    atom: Option<(Atom, isize, bool)>,
    label: String,
    picked: Vec<i64>,
    first: bool,
    last: bool,
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    columns: &'a [String],
    derived: &'a [Derived],
    pad: &'a mut bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, c: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(c));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: char, after: &str) -> Parsed<()> {
        if self.sign(c) {
            return Ok(());
        }
        Err(format!("expected {c:?} after {after}, found {}", self.found()))
    }

    fn found(&self) -> String {
        self.peek().map_or_else(|| "the end of the line".into(), Token::to_string)
    }

    fn line(&mut self, drafts: &mut Vec<Draft>) -> Parsed<()> {
        let (mut edge, mut pad) = (false, *self.pad);
        if let Some(colon) = self.tokens.iter().position(|t| *t == Token::Sign(':')) {
            for token in &self.tokens[..colon] {
                match token {
                    Token::Name(n) if n == "edge" => edge = true,
                    Token::Name(n) if n == "pad" => pad = true,
                    Token::Name(n) if n == "absent" => pad = false,
                    Token::Name(_) | Token::Text(_) | Token::Number(_) | Token::Sign(_) | Token::Range => {
                        return Err(format!("{token} before \":\"; only edge, pad and absent may stand there"))
                    }
                }
            }
            self.at = colon + 1;
            if self.at == self.tokens.len() {
                if edge || colon == 0 {
                    return Err("nothing follows the \":\"; write a template there, for example edge: word[0]".into());
                }
                *self.pad = pad;
                return Ok(());
            }
        }
        let mut name = None;
        if let [Token::Name(n), Token::Sign('='), ..] = &self.tokens[self.at..] {
            name = Some(n.clone());
            self.at += 2;
        }
        let mut parts = vec![self.part()?];
        while self.sign('&') {
            parts.push(self.part()?);
        }
        if self.peek().is_some() {
            return Err(format!("unexpected {}; join parts with & and write one template a line", self.found()));
        }
        let count = parts.iter().try_fold(1usize, |n, p| n.checked_mul(p.len()).filter(|&n| n <= MAX_RULES));
        if count.is_none() {
            return Err(format!("the line expands to more than {MAX_RULES} templates; shorten its ranges"));
        }
        let mut chosen: Vec<Vec<&Expansion>> = vec![Vec::new()];
        for part in &parts {
            chosen = chosen.iter().flat_map(|c| part.iter().map(move |p| [c.as_slice(), &[p]].concat())).collect();
        }
        drafts.extend(chosen.iter().map(|choices| draft(choices, name.as_deref(), edge, pad)));
        Ok(())
    }

    fn part(&mut self) -> Parsed<Vec<Expansion>> {
        let (name, quoted) = match self.peek() {
            Some(Token::Name(n)) => (n.clone(), false),
            Some(Token::Text(n)) => (n.clone(), true),
            _ => {
                return Err(format!(
                    "expected a column such as {}[0], or bias, first, last; found {}",
                    self.columns[0],
                    self.found()
                ))
            }
        };
        self.at += 1;
        if !self.sign('[') {
            if !quoted && matches!(name.as_str(), "bias" | "first" | "last") {
                let (first, last) = (name == "first", name == "last");
                return Ok(vec![Expansion { atom: None, label: name, picked: Vec::new(), first, last }]);
            }
            return Err(match self.column(&name).is_some() {
                true => format!("{name} has no offset; write {name}[0] for the current token"),
                false => format!(
                    "unknown word {name:?}; expected a column such as {}[0], or bias, first, last",
                    self.columns[0]
                ),
            });
        }
        let (column, functions) = self.column(&name).ok_or_else(|| {
            let names: Vec<&str> =
                self.columns.iter().chain(self.derived.iter().map(|d| &d.name)).map(|c| &**c).collect();
            format!("no column {name:?}; the columns are {}", names.join(", "))
        })?;
        let offsets = self.numbers()?;
        self.expect(']', "the offset")?;
        let label = if quoted { format!("{name:?}") } else { name };
        let mut choices: Vec<Expansion> = Vec::new();
        for &offset in &offsets {
            choices.push(Expansion {
                atom: Some((Atom { column, functions: functions.clone() }, offset as isize, false)),
                label: format!("{label}[{offset}]"),
                picked: if offsets.len() > 1 { vec![offset] } else { Vec::new() },
                first: false,
                last: false,
            });
        }
        while self.sign('.') {
            choices = self.call(&choices)?;
        }
        Ok(choices)
    }

    /// Return the column that a name reads, and the functions that derive its value from that column.
    fn column(&self, name: &str) -> Option<(usize, Vec<Function>)> {
        let of_corpus = self.columns.iter().position(|c| c == name).map(|column| (column, Vec::new()));
        let derived = || self.derived.iter().find(|d| d.name == name);
        of_corpus.or_else(|| derived().map(|d| (d.column, vec![d.function.clone()])))
    }

    /// Parse numbers and ranges and expand them: `-2..2`, `1,3`, `0`.
    fn numbers(&mut self) -> Parsed<Vec<i64>> {
        let mut numbers = Vec::new();
        loop {
            let begin = self.number()?;
            let end = if self.peek() == Some(&Token::Range) {
                self.at += 1;
                self.number()?
            } else {
                begin
            };
            if end < begin {
                return Err(format!("the range {begin}..{end} is empty; write the smaller number first"));
            }
            if end.abs_diff(begin) >= MAX_RULES as u64 || numbers.len() + end.abs_diff(begin) as usize >= MAX_RULES {
                return Err(format!("more than {MAX_RULES} numbers; shorten the range"));
            }
            numbers.extend(begin..=end);
            if !self.sign(',') {
                return Ok(numbers);
            }
        }
    }

    fn number(&mut self) -> Parsed<i64> {
        match self.peek() {
            Some(&Token::Number(n)) => {
                self.at += 1;
                Ok(n)
            }
            _ => Err(format!("expected a whole number, found {}", self.found())),
        }
    }

    fn strings(&mut self) -> Parsed<Vec<String>> {
        let mut strings = Vec::new();
        loop {
            match self.peek() {
                Some(Token::Text(s) | Token::Name(s)) if !s.is_empty() => strings.push(s.clone()),
                _ => return Err(format!("expected a string such as \"ing\", found {}", self.found())),
            }
            self.at += 1;
            if !self.sign(',') {
                return Ok(strings);
            }
        }
    }

    /// Append one function or test to every expansion. A list of numbers multiplies the expansions.
    fn call(&mut self, before: &[Expansion]) -> Parsed<Vec<Expansion>> {
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return Err(format!(
                "expected a function after \".\", found {}; there are {FUNCTIONS}, {TESTS}",
                self.found()
            ));
        };
        self.at += 1;
        if before.iter().any(|c| matches!(c.atom, Some((_, _, true)))) {
            return Err(format!(".{name} follows a test; a test is the last of its part"));
        }
        let mut numbers = Vec::new();
        let mut strings = Vec::new();
        let argument_kind = match name.as_str() {
            "prefix" | "suffix" | "cut" | "longer_than" | "is_rare" | "is_frequent" => 'n',
            "starts_with" | "ends_with" | "contains" | "one_of" => 's',
            _ => '0',
        };
        if self.sign('(') {
            match argument_kind {
                'n' => numbers = self.numbers()?,
                's' => strings = self.strings()?,
                _ => return Err(format!("{name} takes no argument; write .{name}")),
            }
            self.expect(')', "the arguments")?;
        } else if argument_kind != '0' {
            let example = if argument_kind == 'n' { "3" } else { "\"ing\"" };
            return Err(format!("{name} needs an argument; write .{name}({example})"));
        }
        if let Some(&n) = numbers.iter().find(|&&n| n < 1) {
            return Err(format!("{name}({n}): expected a number, 1 or more"));
        }
        let has_question_mark = self.sign('?');
        let several_numbers = numbers.len() > 1;
        let arguments: Vec<Option<i64>> =
            if numbers.is_empty() { vec![None] } else { numbers.into_iter().map(Some).collect() };
        if before.len().saturating_mul(arguments.len()) > MAX_RULES {
            return Err(format!("the part expands to more than {MAX_RULES} templates; shorten its ranges"));
        }
        let mut after = Vec::new();
        for choice in before {
            for &n in &arguments {
                let number = n.unwrap_or(0) as usize;
                let mut choice = choice.clone();
                let function = match name.as_str() {
                    "cut" => cut(&mut choice, number)?,
                    _ => function(&name, number, &strings)
                        .ok_or_else(|| format!("unknown function {name:?}; there are {FUNCTIONS}, {TESTS}"))?,
                };
                let test = matches!(function, Function::Test(_));
                if test && !has_question_mark {
                    return Err(format!("{name} is a test; write it with a question mark, .{name}?"));
                }
                if has_question_mark && !test {
                    return Err(format!("{name} is not a test; write it without the question mark"));
                }
                if let Some((atom, _, is_test_atom)) = &mut choice.atom {
                    atom.functions.push(function);
                    *is_test_atom = test;
                }
                choice.label.push('.');
                choice.label.push_str(&name);
                if let Some(n) = n {
                    choice.label.push_str(&format!("({n})"));
                }
                if !strings.is_empty() {
                    let quoted: Vec<String> = strings.iter().map(|s| format!("\"{s}\"")).collect();
                    choice.label.push_str(&format!("({})", quoted.join(",")));
                }
                if has_question_mark {
                    choice.label.push('?');
                }
                choice.picked.extend(n.filter(|_| several_numbers));
                after.push(choice);
            }
        }
        Ok(after)
    }
}

/// Take the classes of words from the end of a part and return the function that cuts their tree.
fn cut(choice: &mut Expansion, n: usize) -> Parsed<Function> {
    match choice.atom.as_mut().map(|(atom, _, _)| &mut atom.functions) {
        Some(functions) if matches!(functions[..], [Function::Class(_)]) => match functions.pop() {
            Some(Function::Class(table)) => Ok(Function::Cut(Arc::new(Cut::new(table, n)))),
            other => Err(format!("{other:?} cannot be cut")),
        },
        _ => Err("cut is for word classes; write it right after their column, as in classes[0].cut(32)".into()),
    }
}

fn function(name: &str, n: usize, strings: &[String]) -> Option<Function> {
    Some(match name {
        "prefix" => Function::Prefix(n),
        "suffix" => Function::Suffix(n),
        "lower" => Function::Lower,
        "digits" => Function::Digits,
        "shape" => Function::Shape,
        "short_shape" => Function::ShortShape,
        "length" => Function::Length,
        "initial" => Function::Initial,
        _ => Function::Test(match name {
            "is_capitalized" => Test::IsCapitalized,
            "is_upper" => Test::IsUpper,
            "is_lower" => Test::IsLower,
            "is_title" => Test::IsTitle,
            "is_digit" => Test::IsDigit,
            "is_alpha" => Test::IsAlpha,
            "is_alnum" => Test::IsAlnum,
            "is_punct" => Test::IsPunct,
            "is_number" => Test::IsNumber,
            "has_upper" => Test::HasUpper,
            "has_digit" => Test::HasDigit,
            "has_letter" => Test::HasLetter,
            "has_hyphen" => Test::HasHyphen,
            "has_dot" => Test::HasDot,
            "longer_than" => Test::LongerThan(n),
            "starts_with" => Test::StartsWith(strings.to_vec()),
            "ends_with" => Test::EndsWith(strings.to_vec()),
            "contains" => Test::Contains(strings.to_vec()),
            "one_of" => Test::OneOf(strings.to_vec()),
            "is_rare" => Test::IsRare(Frequent { min_count: n, texts: None }),
            "is_frequent" => Test::IsFrequent(Frequent { min_count: n, texts: None }),
            _ => return None,
        }),
    })
}

/// Return the rule of one expansion. Its text is `word[-1]=the & word[0].is_upper?`, or `name=the` if it has a name.
fn draft(choices: &[&Expansion], name: Option<&str>, edge: bool, pad: bool) -> Draft {
    let mut parts = Vec::new();
    let mut pieces = Vec::new();
    let mut piece = String::from(if edge { "edge: " } else { "" });
    let values = choices.iter().any(|c| matches!(c.atom, Some((_, _, false))));
    if let Some(name) = name {
        piece.push_str(name);
        let picked: Vec<String> = choices.iter().flat_map(|c| &c.picked).map(i64::to_string).collect();
        if !picked.is_empty() {
            piece.push_str(&format!("[{}]", picked.join(",")));
        }
        if values {
            piece.push('=');
        }
    }
    let mut written = false;
    for (i, choice) in choices.iter().enumerate() {
        let valued = matches!(choice.atom, Some((_, _, false)));
        if name.is_none() {
            piece.push_str(if i > 0 { " & " } else { "" });
            piece.push_str(&choice.label);
            piece.push_str(if valued { "=" } else { "" });
        } else if valued && written {
            piece.push('|');
        }
        written |= valued;
        if let Some(atom) = &choice.atom {
            pieces.push(std::mem::take(&mut piece));
            parts.push(atom.clone());
        }
    }
    pieces.push(piece);
    Draft { parts, pieces, edge, pad, first: choices.iter().any(|c| c.first), last: choices.iter().any(|c| c.last) }
}
