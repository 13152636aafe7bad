//! What makes two requests the same: bodies by their media type, headers as the route names them.

pub(crate) mod canonical;
pub(crate) mod compared_headers;
pub(crate) mod form;
pub(crate) mod gzip;
pub(crate) mod media_type;
pub(crate) mod member_order;
pub(crate) mod multipart;
pub(crate) mod rule;
