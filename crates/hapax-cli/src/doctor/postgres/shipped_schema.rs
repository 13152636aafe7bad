//! What the shipped script makes, read from the script itself.
//!
//! It knows as much SQL as migrations are written in: it tells statements apart and reads their heads. What a
//! `DO` block makes is not seen, and not compared.

use std::collections::{BTreeMap, BTreeSet};

/// What a database has after the script.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShippedSchema {
    /// Functions by their names and the types of their arguments, with their bodies.
    functions: BTreeMap<(String, String), FunctionBody>,
    pub(super) tables: BTreeMap<String, ShippedTable>,
    pub(super) indexes: BTreeSet<String>,
    pub(super) triggers: BTreeSet<String>,
    pub(super) views: BTreeSet<String>,
}

/// A body that stands between quotes is kept by the server as it is; another one it keeps as it understood it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FunctionBody {
    Quoted(String),
    Parsed,
}

/// A table, as far as it is compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShippedTable {
    pub(super) has_primary_key: bool,
    /// Storage parameters, such as `fillfactor`.
    pub(super) options: BTreeMap<String, String>,
}

impl ShippedSchema {
    /// What this script leaves behind.
    pub(super) fn of(script: &str) -> Self {
        let mut schema = Self::default();
        for statement in statements(script) {
            schema.apply(&statement);
        }
        schema
    }

    /// The bodies of functions of each name: several where the name is overloaded.
    pub(super) fn functions(&self) -> BTreeMap<&str, Vec<&FunctionBody>> {
        let mut named: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for ((name, _), body) in &self.functions {
            named.entry(name).or_default().push(body);
        }
        named.values_mut().for_each(|bodies| bodies.sort());
        named
    }

    fn apply(&mut self, statement: &str) {
        let words: Vec<_> = statement.split_whitespace().collect();
        let word =
            |at: usize| words.get(at).map(|word| word.to_ascii_uppercase()).unwrap_or_default();
        match [word(0), word(1), word(2), word(3)].each_ref().map(String::as_str) {
            ["CREATE", "FUNCTION", ..] | ["CREATE", "OR", "REPLACE", "FUNCTION"] => {
                self.function(statement);
            }
            ["DROP", "FUNCTION", ..] => self.drop_function(statement),
            ["CREATE", "TABLE", ..] => self.table(statement),
            ["ALTER", "TABLE", ..] => self.alter_table(statement),
            ["DROP", "TABLE", ..] => self.drop(statement, |schema, name| {
                schema.tables.remove(name);
            }),
            ["CREATE", "INDEX", ..] | ["CREATE", "UNIQUE", "INDEX", _] => {
                self.indexes.extend(before(&words, "ON"));
            }
            ["DROP", "INDEX", ..] => self.drop(statement, |schema, name| {
                schema.indexes.remove(name);
            }),
            ["CREATE", "TRIGGER", ..] => self.triggers.extend(words.get(2).map(|name| own(name))),
            ["CREATE", "VIEW", ..] => self.views.extend(words.get(2).map(|name| own(name))),
            ["CREATE", "OR", "REPLACE", "VIEW"] => {
                self.views.extend(words.get(4).map(|name| own(name)));
            }
            ["DROP", "VIEW", ..] => self.drop(statement, |schema, name| {
                schema.views.remove(name);
            }),
            _ => {}
        }
    }

    fn function(&mut self, statement: &str) {
        let Some((name, arguments, rest)) = signature(statement, "FUNCTION") else { return };
        let body = quoted(rest).map_or(FunctionBody::Parsed, FunctionBody::Quoted);
        self.functions.insert((name, types(arguments, ArgumentNames::Yes)), body);
    }

    fn drop_function(&mut self, statement: &str) {
        let dropped = after(statement, "FUNCTION").map(pieces).unwrap_or_default();
        for function in dropped {
            match signature(&format!("FUNCTION {function}"), "FUNCTION") {
                Some((name, arguments, _)) => {
                    let gone = [ArgumentNames::No, ArgumentNames::Yes]
                        .map(|named| types(arguments, named));
                    self.functions.retain(|(known, of), _| *known != name || !gone.contains(of));
                }
                None => {
                    let name = function.split_whitespace().last().map(own).unwrap_or_default();
                    self.functions.retain(|(known, _), _| *known != name);
                }
            }
        }
    }

    fn table(&mut self, statement: &str) {
        let Some((name, columns, rest)) = signature(statement, "TABLE") else { return };
        let has_primary_key = columns.to_ascii_uppercase().contains("PRIMARY KEY");
        let options = after(rest, "WITH").map(settings).unwrap_or_default();
        self.tables.insert(name, ShippedTable { has_primary_key, options });
    }

    fn alter_table(&mut self, statement: &str) {
        let words: Vec<_> = statement.split_whitespace().collect();
        let name = words.get(2).map(|name| own(name)).unwrap_or_default();
        let Some(table) = self.tables.get_mut(&name) else { return };
        if words.get(3).is_some_and(|word| word.eq_ignore_ascii_case("SET"))
            && let Some(set) = after(statement, "SET")
        {
            table.options.extend(settings(set));
        }
    }

    fn drop(&mut self, statement: &str, forget: impl Fn(&mut Self, &str)) {
        let names = statement.split_whitespace().skip(2);
        let is_name = |word: &&str| !["IF", "EXISTS", "CASCADE", "RESTRICT"].contains(word);
        for name in names.filter(is_name) {
            forget(self, &own(name));
        }
    }
}

/// Whether arguments have names before their types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ArgumentNames {
    Yes,
    No,
}

/// The name after this word, what is between its parentheses, and the rest.
fn signature<'s>(statement: &'s str, word: &str) -> Option<(String, &'s str, &'s str)> {
    let rest = after(statement, word)?;
    let open = rest.find('(')?;
    let name = own(rest[..open].split_whitespace().last()?);
    let close = open + closing(&rest[open..])?;
    Some((name, &rest[open + 1..close], &rest[close + 1..]))
}

/// The types of arguments, without names, modes and defaults.
fn types(arguments: &str, named: ArgumentNames) -> String {
    let types = pieces(arguments).into_iter().map(|argument| {
        let upper = argument.to_ascii_uppercase();
        let end = [" DEFAULT ", " = "].iter().filter_map(|sign| upper.find(sign)).min();
        let words = argument[..end.unwrap_or(argument.len())].split_whitespace();
        let words = words.filter(|word| !["IN", "OUT", "INOUT", "VARIADIC"].contains(word));
        let skip = if named == ArgumentNames::Yes { 1 } else { 0 };
        let words: Vec<_> = words.collect();
        let kept = if words.len() > skip { &words[skip..] } else { &words[..] };
        kept.join(" ")
    });
    types.collect::<Vec<_>>().join(", ")
}

/// `(a = 1, b = 2)` as pairs.
fn settings(text: &str) -> BTreeMap<String, String> {
    let inside = text.find('(').and_then(|open| {
        let close = open + closing(&text[open..])?;
        Some(&text[open + 1..close])
    });
    let pairs = pieces(inside.unwrap_or_default());
    let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// What stands between commas that are in no parentheses.
fn pieces(text: &str) -> Vec<&str> {
    let (mut pieces, mut depth, mut from) = (Vec::new(), 0_i32, 0);
    for (at, char) in text.char_indices() {
        match char {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                pieces.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(text[from..].trim());
    pieces.retain(|piece| !piece.is_empty());
    pieces
}

/// Where the parenthesis that opens the text is closed.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.char_indices().find_map(|(at, char)| {
        match char {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(at)
    })
}

/// What stands between the first pair of dollar quotes after AS.
fn quoted(text: &str) -> Option<String> {
    let rest = after(text, "AS")?.trim_start();
    let tag = rest.strip_prefix('$').and_then(|rest| rest.split_once('$'))?.0;
    let mark = format!("${tag}$");
    let rest = rest.strip_prefix(mark.as_str())?;
    rest.find(&mark).map(|end| rest[..end].to_owned())
}

/// What follows this word, where it stands alone.
fn after<'s>(text: &'s str, word: &str) -> Option<&'s str> {
    let is_part =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let upper = text.to_ascii_uppercase();
    upper.match_indices(word).find_map(|(at, _)| {
        let (start, end) = (at.checked_sub(1), at + word.len());
        let bytes = upper.as_bytes();
        let alone = !is_part(start.and_then(|start| bytes.get(start))) && !is_part(bytes.get(end));
        alone.then(|| &text[end..])
    })
}

/// The word before this one.
fn before(words: &[&str], word: &str) -> Option<String> {
    let at = words.iter().position(|other| other.eq_ignore_ascii_case(word))?;
    words.get(at.checked_sub(1)?).map(|name| own(name))
}

/// A name without its schema.
fn own(name: &str) -> String {
    let name = name.trim_end_matches([',', ';', '(']);
    name.strip_prefix("hapax.").unwrap_or(name).to_owned()
}

/// The statements of a script, without comments that stand between them.
fn statements(script: &str) -> Vec<String> {
    let (mut statements, mut current) = (Vec::new(), String::new());
    let mut rest = script;
    while let Some(first) = rest.chars().next() {
        let end = token(rest, first);
        let (piece, behind) = rest.split_at(end);
        match piece {
            ";" => statements.push(std::mem::take(&mut current)),
            comment if comment.starts_with("--") => current.push('\n'),
            piece => current.push_str(piece),
        }
        rest = behind;
    }
    statements.push(current);
    statements.retain(|statement| !statement.trim().is_empty());
    statements
}

/// How long the token is that the text begins with: something quoted, a comment, or one character.
fn token(text: &str, first: char) -> usize {
    let quoted = |mark: &str| {
        let behind = text.get(mark.len()..).unwrap_or_default();
        behind.find(mark).map_or(text.len(), |at| at + 2 * mark.len())
    };
    match first {
        '\'' => quoted("'"),
        '"' => quoted("\""),
        '-' if text.starts_with("--") => text.find('\n').unwrap_or(text.len()),
        '$' => match text[1..].split_once('$') {
            Some((tag, _))
                if tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
            {
                quoted(&text[..tag.len() + 2])
            }
            _ => 1,
        },
        other => other.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "
-- A comment; with a semicolon, and an apostrophe's trap.
CREATE TABLE hapax.things (id uuid PRIMARY KEY, n numeric(10, 2)) WITH (fillfactor = 45, vacuum_truncate = false);
CREATE TABLE hapax.bare (at bigint NOT NULL);
CREATE INDEX things_n ON hapax.things (n);
CREATE FUNCTION hapax.one(value text) RETURNS text LANGUAGE sql RETURN value || ';';
CREATE FUNCTION hapax.one(value bytea, wait bigint DEFAULT 0) RETURNS text
LANGUAGE plpgsql AS $$ BEGIN; RETURN ''; END $$;
CREATE TRIGGER watch AFTER INSERT ON hapax.things EXECUTE FUNCTION hapax.one();
CREATE VIEW hapax.seen AS SELECT 1;
";

    #[test]
    fn statements_are_told_apart_and_their_heads_are_read() {
        let schema = ShippedSchema::of(SCRIPT);
        let things = &schema.tables["things"];
        assert!(things.has_primary_key && !schema.tables["bare"].has_primary_key);
        assert_eq!(things.options["fillfactor"], "45");
        assert_eq!(schema.indexes.iter().collect::<Vec<_>>(), ["things_n"]);
        assert_eq!(schema.triggers.iter().collect::<Vec<_>>(), ["watch"]);
        assert_eq!(schema.views.iter().collect::<Vec<_>>(), ["seen"]);
        let body = FunctionBody::Quoted(" BEGIN; RETURN ''; END ".to_owned());
        assert_eq!(schema.functions()["one"], [&body, &FunctionBody::Parsed]);
    }

    #[test]
    fn what_a_later_migration_changes_counts() {
        let later = "
CREATE OR REPLACE FUNCTION hapax.one(value bytea, wait bigint DEFAULT 7) RETURNS text LANGUAGE sql AS $f$new$f$;
DROP FUNCTION hapax.one(text);
ALTER TABLE hapax.things SET (fillfactor = 90, autovacuum_vacuum_scale_factor = 0);
DROP INDEX hapax.things_n;
CREATE OR REPLACE VIEW hapax.more AS SELECT 2;
";
        let schema = ShippedSchema::of(&format!("{SCRIPT}{later}"));
        assert_eq!(schema.functions()["one"], [&FunctionBody::Quoted("new".to_owned())]);
        assert_eq!(schema.tables["things"].options["fillfactor"], "90");
        assert_eq!(schema.tables["things"].options.len(), 3);
        assert!(schema.indexes.is_empty() && schema.views.contains("more"));
    }

    #[test]
    fn the_shipped_script_is_understood() {
        let schema = ShippedSchema::of(&hapax::postgres::script(0));
        assert!(schema.tables["operations"].has_primary_key);
        assert!(schema.triggers.contains("note_bound"));
        let named = schema.functions();
        assert_eq!(named["as_bytes"].len(), 4);
        assert!(matches!(named["lock_operation"][..], [FunctionBody::Quoted(_)]));
        assert!(matches!(named["clock"][..], [FunctionBody::Parsed]));
    }
}
