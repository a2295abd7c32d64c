//! `hookgate inbox erase`: deletes the data of one person, or of one row, from an inbox.

use std::borrow::Cow;
use std::fmt;
use std::process::ExitCode;

use hookgate::{
    clock::{Clock, SystemClock},
    dedupe::StoreError,
};
use hookgate_inbox::{EntryId, EntryState, Inbox, Listed, Selection, StoredEntry};
use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::json;

use super::choice::{EntrySummary, each, entries};
use super::list;
use super::place::InboxArg;
use crate::fault::{Fault, answer, note};
use crate::interrupt;
use crate::out::Out;

/// Delete the data of one person, or of one row, from the inbox. Without --yes, only list it.
///
/// Of an entry that is dead or done, the body, the row and the last error are deleted. Its event's
/// id stays known for the retention, so that a copy is not handled again. Entries that wait or run
/// are listed and kept, unless --including-waiting is given. Of another's entry whose last error
/// has the id, only the last error is deleted, whatever its state. Delivery logs and the effects of
/// your handlers are not touched.
///
/// Exit code 1 where nothing was found, and where --yes has kept an entry.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("whose").required(true).args(["person", "row"])))]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    place: InboxArg,
    /// Everything in which this id stands as a word of its own: authors of changes, values of
    /// columns, texts. An e-mail address can be given as well
    #[arg(long, value_name = "ID", value_parser = id)]
    person: Option<String>,
    /// Everything of this row
    #[arg(long, value_name = "ID", value_parser = id)]
    row: Option<String>,
    /// Erase entries that wait or run too. THEY ARE THEN NEVER HANDLED, and a handler that runs is
    /// not stopped
    #[arg(long)]
    including_waiting: bool,
    /// Erase what is found
    #[arg(long)]
    yes: bool,
}

/// An entry that was found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundEntry {
    #[serde(flatten)]
    shown: EntrySummary,
    /// It waits or runs, and is not to be erased.
    kept: bool,
    /// It is another's, and only its last error is to be erased.
    last_error_only: bool,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    entries: usize,
    kept: usize,
    last_errors: usize,
}

pub(crate) fn run(args: &EraseArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let subject = match (&args.person, &args.row) {
        (Some(person), _) => Subject::Person(person),
        // Clap has checked that one of the two is given.
        (None, row) => Subject::Row(row.as_deref().unwrap_or_default()),
    };
    interrupt::block_on(async {
        let mut counts = Counts::default();
        let inbox = args.place.open().await?;
        if let Err(fault) = in_inbox(args, &inbox, &subject, &mut counts, out).await {
            if args.yes && counts.entries + counts.last_errors > 0 {
                // Where that can't be printed, the fault is still the first one.
                let _ = say(args, counts, out);
            }
            return Err(fault);
        }
        inbox.close().await;
        conclude(args, counts, out)
    })
}

/// Counts each deletion at once, so that the number is known after a fault, too.
async fn in_inbox(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
    counts: &mut Counts,
    out: &mut Out,
) -> Result<(), Fault> {
    let found = find(args, inbox, subject).await?;
    if !found.is_empty() && !out.is_json() {
        out.line(&list::row(&list::HEAD))?;
    }
    let (theirs, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|(_, holds)| *holds == Holds::InBody);
    let mut targets = Vec::new();
    let now = SystemClock.now();
    let say = |listed: &Listed, kept, last_error_only, out: &mut Out| {
        let shown = EntrySummary::of(listed, now);
        let found = FoundEntry {
            shown,
            kept,
            last_error_only,
        };
        out.say(&list::text(&found.shown), &found)
    };
    for (listed, _) in &theirs {
        let waits = matches!(listed.state, EntryState::Queued | EntryState::Running);
        let kept = waits && !args.including_waiting;
        if !kept {
            targets.push(listed.id);
        }
        say(listed, kept, false, out)?;
    }
    if !others.is_empty() && !out.is_json() {
        out.line(
            "the id is in the last errors of these alone, which are erased, and the entries stay:",
        )?;
    }
    for (listed, _) in &others {
        say(listed, false, true, out)?;
    }
    out.flush()?;
    counts.kept = theirs.len() - targets.len();
    if args.yes {
        // After a fault, only the entries that were deleted count.
        let until = |error: &StoreError| usize::try_from(error.changed()).unwrap_or(usize::MAX);
        if !others.is_empty() {
            let others: Vec<EntryId> = others.iter().map(|(listed, _)| listed.id).collect();
            let erased = inbox.erase_last_errors(&others).await;
            counts.last_errors = erased.as_ref().map_or_else(until, |_| others.len());
            erased.map_err(|error| not_erased(args, &error))?;
        }
        // Also without an entry: what was deleted before may have left its bytes in the file.
        let erased = if args.including_waiting {
            inbox.erase_including_waiting(&targets).await
        } else {
            inbox.erase(&targets).await
        };
        counts.entries = erased.as_ref().map_or_else(until, |_| targets.len());
        erased.map_err(|error| not_erased(args, &error))?;
        // One may have been made due, or leased, since it was listed.
        for id in targets {
            let holds = match inbox.show(id).await {
                Ok(shown) => shown.is_some_and(|shown| subject.is_in(&shown).is_some()),
                Err(error) => return Err(args.place.fault(&error)),
            };
            counts.entries -= usize::from(holds);
            counts.kept += usize::from(holds);
        }
    } else {
        (counts.entries, counts.last_errors) = (targets.len(), others.len());
    }
    Ok(())
}

/// The last step writes an inbox's file anew. Without it, entries are erased and their bytes may
/// still be there.
fn not_erased(args: &EraseArgs, error: &StoreError) -> Fault {
    let fault = args.place.fault(error);
    if !args.place.is_file() {
        return fault;
    }
    let advice = fault.advice().unwrap_or_default();
    let advice = format!(
        "{advice}. Until a run ends without this error, erased data may be left in the file"
    );
    fault.advise(advice)
}

/// The entries that hold data of the subject, and where.
async fn find(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
) -> Result<Vec<(Listed, Holds)>, Fault> {
    let mut found = Vec::new();
    let unreadable = |error| args.place.fault(&error);
    each(inbox, Selection::all(), unreadable, async |listed| {
        if let Some(holds) = holds(args, inbox, subject, &listed).await? {
            found.push((listed, holds));
        }
        Ok(())
    })
    .await?;
    Ok(found)
}

async fn holds(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
    listed: &Listed,
) -> Result<Option<Holds>, Fault> {
    // An entry without a body has its last error at most.
    if listed.body_bytes == 0 {
        return Ok(subject.is_in_last_error(listed));
    }
    let shown = inbox.show(listed.id).await;
    let shown = shown.map_err(|error| args.place.fault(&error))?;
    Ok(shown.and_then(|shown| subject.is_in(&shown)))
}

/// Prints the counts of an erasure, or of its dry run.
fn say(args: &EraseArgs, counts: Counts, out: &mut Out) -> Result<(), Fault> {
    let Counts {
        entries: erased,
        kept,
        last_errors,
    } = counts;
    let value = json!({
        "dryRun": !args.yes,
        "entries": erased,
        "kept": kept,
        "lastErrors": last_errors,
    });
    let of_others = match last_errors {
        0 => String::new(),
        1 => ", the last error of 1 other".into(),
        count => format!(", the last errors of {count} others"),
    };
    let what = format!("{}{of_others}", entries(erased as u64));
    let what = match (args.yes, kept) {
        (false, 0) if erased == 0 && last_errors == 0 => format!("nothing to erase: {what}"),
        (true, 0) => format!("{what} erased"),
        (true, _) => format!(
            "{what} erased; {} that wait or run kept",
            entries(kept as u64)
        ),
        (false, 0) => format!("nothing erased yet, --yes erases {what}"),
        (false, _) => format!(
            "nothing erased yet, --yes erases {what}; {} that wait or run are kept without --including-waiting",
            entries(kept as u64)
        ),
    };
    out.say(&what, &value)?;
    out.flush()?;
    Ok(())
}

fn conclude(args: &EraseArgs, counts: Counts, out: &mut Out) -> Result<ExitCode, Fault> {
    say(args, counts, out)?;
    if counts.entries + counts.kept + counts.last_errors == 0 {
        note(
            "nothing was found with that id. An entry that is done has no body, and can't be searched",
        );
        return Ok(answer(false));
    }
    if args.yes && counts.kept > 0 {
        note(
            "run it again when the entries are handled or dead, or with --including-waiting, which erases them unhandled",
        );
        return Ok(answer(false));
    }
    Ok(ExitCode::SUCCESS)
}

/// The person or the row whose data is looked for.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Person(&'a str),
    Row(&'a str),
}

/// The place of the data in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// In its body, and perhaps in its last error: the entry is of the person or the row.
    InBody,
    /// In its last error alone: the entry is another's.
    InLastError,
}

/// An id of a person or a row.
fn id(text: &str) -> Result<String, &'static str> {
    if text.trim() != text || text.is_empty() {
        return Err("write the id as the events have it, without spaces around it");
    }
    Ok(text.to_owned())
}

impl<'a> Subject<'a> {
    fn is_in(&self, entry: &StoredEntry) -> Option<Holds> {
        let body = entry.body.as_ref();
        if body.is_some_and(|body| self.is_in_body(body)) {
            return Some(Holds::InBody);
        }
        self.is_in_last_error(&entry.listed)
    }

    fn is_in_last_error(&self, listed: &Listed) -> Option<Holds> {
        let error = listed.last_error.as_deref()?;
        self.is_in_text(error).then_some(Holds::InLastError)
    }

    /// Whether the id stands in the text as a word: neither a letter, a digit, `_` nor `-` is
    /// beside it.
    fn is_in_text(&self, text: &str) -> bool {
        let is_of_a_word = |char: char| char.is_alphanumeric() || char == '_' || char == '-';
        let (text, id) = self.comparable(text);
        text.match_indices(&*id).any(|(at, _)| {
            let (before, behind) = (&text[..at], &text[at + id.len()..]);
            !before.ends_with(is_of_a_word) && !behind.starts_with(is_of_a_word)
        })
    }

    /// A text and the id, as they are compared: an e-mail address counts in capital and small
    /// letters.
    fn comparable<'t>(&self, text: &'t str) -> (Cow<'t, str>, Cow<'a, str>) {
        let (Self::Person(id) | Self::Row(id)) = *self;
        if id.contains('@') {
            let lower = |text: &str| Cow::Owned(text.to_ascii_lowercase());
            return (lower(text), lower(id));
        }
        (text.into(), id.into())
    }

    /// A body that is no JSON as a whole holds the id where the text is anywhere in it: a match too
    /// many is better than one too few.
    #[expect(
        clippy::disallowed_methods,
        reason = "texts are compared as they are read"
    )]
    fn is_in_body(&self, body: &[u8]) -> bool {
        let mut json = serde_json::Deserializer::from_slice(body);
        let search = Search {
            subject: self,
            place: Place::Top,
        };
        let found = search
            .deserialize(&mut json)
            .and_then(|found| json.end().map(|()| found));
        found.unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(body);
            let (text, id) = self.comparable(&text);
            text.contains(&*id)
        })
    }
}

/// The place of a value in a body.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Top,
    Data,
    RowId,
    Other,
}

/// Looks through a value, names of fields included. A name that stands there twice counts each
/// time, which a map would hide.
#[derive(Clone, Copy)]
struct Search<'s> {
    subject: &'s Subject<'s>,
    place: Place,
}

impl Search<'_> {
    fn at(self, name: &str) -> Self {
        let place = match (self.place, name) {
            (Place::Top, "data") => Place::Data,
            (Place::Data, "rowId") => Place::RowId,
            _ => Place::Other,
        };
        Self { place, ..self }
    }

    fn is_in(self, text: &str) -> bool {
        match self.subject {
            Subject::Person(_) => self.subject.is_in_text(text),
            Subject::Row(row) => self.place == Place::RowId && text == *row,
        }
    }
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut found = false;
        while let Some(name) = map.next_key::<String>()? {
            found |= matches!(self.subject, Subject::Person(_)) && self.is_in(&name);
            found |= map.next_value_seed(self.at(&name))?;
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let inside = self.at("");
        let mut found = false;
        while let Some(value) = list.next_element_seed(inside)? {
            found |= value;
        }
        Ok(found)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<bool, E> {
        Ok(self.is_in(text))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<bool, E> {
        Ok(self.is_in(&number.to_string()))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<bool, E> {
        Ok(self.is_in(&number.to_string()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E: Error>(self) -> Result<bool, E> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use hookgate::dedupe::StoreErrorKind;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: EraseArgs,
    }

    // fault O7: an erasure fails as its disk is full, and it is not said that data may be left in the file; or it is said of PostgreSQL
    #[test]
    fn what_a_failed_erasure_may_leave_is_said_of_a_file_alone() {
        for (place, is_file) in [("--db", true), ("--database-url-env", false)] {
            let command = ["erase", "--person", "usr_1", place, "inbox"];
            let args = Command::parse_from(command).args;
            for kind in [StoreErrorKind::TimedOut, StoreErrorKind::Full] {
                let fault = not_erased(&args, &StoreError::new(kind));
                let advice = fault.advice().unwrap_or_default();
                assert_eq!(advice.contains("left in the file"), is_file, "{advice}");
            }
        }
    }

    #[test]
    fn a_person_is_found_in_every_place_and_no_other_person() {
        let person = Subject::Person("usr_1");
        for body in [
            r#"{"data":{"createdBy":{"id":"usr_1","name":"Ada"}}}"#,
            r#"{"data":{"properties":{"Owner":["usr_2","usr_1"]}}}"#,
            r#"{"data":{"properties":{"Note":"ask @usr_1, please"}}}"#,
            r#"{"data":{"changes":{"Owner":{"before":{"id":"usr_1"},"after":null}}}}"#,
            r#"{"data":{"usr_1":true}}"#,
            r#"{"data":{"a":"\u0075sr_1","a":"usr_2"}}"#,
            r#"{"data":{"deletedBy":{"id":"usr_1"}}"#, // cut off
            "usr_1",
        ] {
            assert!(person.is_in_body(body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"id":"evt_1","data":{"createdBy":{"id":"usr_12"}}}"#,
            r#"{"data":{"createdBy":{"id":"xusr_1"},"n":[1,2.5,null,true]}}"#,
            r#"{"data":{"id":"usr_1-b","x":"usr_1_2"}}"#,
            "",
        ] {
            assert!(!person.is_in_body(body.as_bytes()), "{body}");
        }
        assert!(Subject::Person("ada@example.com").is_in_body(br#"{"a":"Ada <ada@example.com>"}"#));
        assert!(Subject::Person("7").is_in_body(br#"{"user":7}"#));
    }

    #[test]
    fn an_e_mail_address_is_found_in_capital_and_small_letters() {
        let address = Subject::Person("Ada@Example.com");
        for body in [
            r#"{"a":"Ada <ADA@example.COM>"}"#,
            r#"{"a":"\u0041DA@example.com"}"#,
            r#"{"a":"ADA@example.com"#,
        ] {
            assert!(address.is_in_body(body.as_bytes()), "{body}");
        }
        assert!(!Subject::Person("usr_a").is_in_body(br#"{"a":"usr_A"}"#));
    }

    #[test]
    fn a_row_is_found_by_its_own_id_and_not_by_relations_to_it() {
        let row = Subject::Row("row_1");
        for body in [
            r#"{"data":{"rowId":"row_1"}}"#,
            r#"{"data":{"rowId":"row_1","rowId":"row_2"}}"#,
            r#"{"data":{"rowId":"row_1""#,
        ] {
            assert!(row.is_in_body(body.as_bytes()), "{body}");
        }
        for body in [
            r#"{"data":{"rowId":"row_12"}}"#,
            r#"{"rowId":"row_1","data":{"rowId":"row_2","properties":{"Customer":["row_1"]}}}"#,
            r#"{"data":{"properties":{"rowId":"row_1"}}}"#,
            r#"{"data":[{"rowId":"row_1"}]}"#,
        ] {
            assert!(!row.is_in_body(body.as_bytes()), "{body}");
        }
    }

    #[test]
    fn an_id_that_would_fit_everything_is_refused() {
        assert_eq!(id("usr_1"), Ok("usr_1".to_owned()));
        for text in ["", " ", "usr_1 ", "\tusr_1"] {
            assert!(id(text).is_err(), "{text:?}");
        }
    }
}
