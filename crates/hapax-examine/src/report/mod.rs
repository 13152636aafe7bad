//! The report in all its forms. All of them are made from [`ReportDocument`], in which there are no secrets, so that
//! a report that was written to a file can be shown in another form later.

mod badge;
mod document;
mod html;
mod junit;
mod minutes;
mod redaction;
mod reproducer;
mod sarif;
mod summary;
mod terminal;
mod text;
mod timeline;
mod transcript;

pub use self::{
    badge::render_badge,
    document::{
        ControlDocument, ControlOutcome, CoverageDocument, CutDocument, CutManner, CutMessage,
        DefectDocument, EndDocument, ExchangeDocument, GradeDocument, MessageDocument,
        OracleDocument, ProbeDocument, ProbeNoteDocument, REPORT_FORMAT, RacesDocument,
        ReportDocument, ReportFault, TargetDocument, VerdictDocument,
    },
    html::render_html,
    junit::render_junit,
    redaction::{REDACTED, Redaction},
    sarif::render_sarif,
    terminal::{TerminalColour, render_terminal},
};
pub(crate) use self::{terminal::COLUMNS, text::wrapped};
