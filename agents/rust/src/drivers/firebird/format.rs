//! How the values of a prepared statement's columns and parameters lie on the wire, from its description.

use super::xdr::{Put, Reader, padding};
use crate::decimal::{DIGITS, decimal};
use crate::failure::{Failure, Result};
use crate::program::{Parameter, Room};

/// The character set of values that aren't text.
const ASCII: u8 = 2;
/// Maximum text length of a value that isn't text.
const TEXT_OF_VALUE: u16 = 128;

/// Wire format of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Text(u16),
    Varying,
    /// Integers of 16 and 32 bits, date, time and single precision: four bytes each.
    Four,
    Eight,
    Sixteen,
    Boolean,
    Blob,
}

/// The values of a message: a bitmap of NULLs, then each value that isn't NULL.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Format {
    pub kinds: Vec<Kind>,
    /// The message's description in the server's format.
    pub blr: Vec<u8>,
    /// Bytes of a message in the server's memory.
    pub length: usize,
    pub has_blobs: bool,
}

/// The description of a column or a parameter from `prepare`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Described {
    pub sql_type: i32,
    pub sub_type: i32,
    pub scale: i32,
    pub length: i32,
    pub name: String,
}

const SQL_TEXT: i32 = 452;
const SQL_VARYING: i32 = 448;
const SQL_SHORT: i32 = 500;
const SQL_LONG: i32 = 496;
const SQL_FLOAT: i32 = 482;
const SQL_DOUBLE: i32 = 480;
const SQL_TIMESTAMP: i32 = 510;
const SQL_BLOB: i32 = 520;
const SQL_TIME: i32 = 560;
const SQL_DATE: i32 = 570;
const SQL_INT64: i32 = 580;
const SQL_INT128: i32 = 32752;
const SQL_BOOLEAN: i32 = 32764;

impl Format {
    /// Columns as applications bind them: each with its own type.
    pub fn native(columns: &[Described]) -> Format {
        Format::of(columns.iter().map(|column| {
            let scale = column.scale as i8 as u8;
            match column.sql_type & !1 {
                SQL_TEXT => counted(15, column, Kind::Text(column.length as u16)),
                SQL_VARYING => counted(38, column, Kind::Varying),
                SQL_SHORT => (vec![7, scale], Kind::Four, 2),
                SQL_LONG => (vec![8, scale], Kind::Four, 4),
                SQL_INT64 => (vec![16, scale], Kind::Eight, 8),
                SQL_INT128 => (vec![26, scale], Kind::Sixteen, 16),
                SQL_FLOAT => (vec![10], Kind::Four, 4),
                SQL_DOUBLE => (vec![27], Kind::Eight, 8),
                SQL_TIMESTAMP => (vec![35], Kind::Eight, 8),
                SQL_DATE => (vec![12], Kind::Four, 4),
                SQL_TIME => (vec![13], Kind::Four, 4),
                SQL_BOOLEAN => (vec![23], Kind::Boolean, 1),
                SQL_BLOB => (vec![9, 0], Kind::Blob, 8),
                _ => text_of_value(),
            }
        }))
    }

    /// Columns as text for people: the server converts. BLOBs stay BLOBs.
    pub fn text(columns: &[Described]) -> Format {
        Format::of(columns.iter().map(|column| match column.sql_type & !1 {
            SQL_TEXT | SQL_VARYING => counted(38, column, Kind::Varying),
            SQL_BLOB => (vec![9, 0], Kind::Blob, 8),
            _ => text_of_value(),
        }))
    }

    /// Parameters: integers with the described type, everything else as text that the server converts.
    pub fn parameters(parameters: &[Described]) -> Format {
        Format::of(parameters.iter().map(|parameter| match (parameter.sql_type & !1, parameter.scale) {
            (SQL_SHORT, 0) | (SQL_LONG, 0) => (vec![8, 0], Kind::Four, 4),
            (SQL_INT64, 0) => (vec![16, 0], Kind::Eight, 8),
            (SQL_TEXT | SQL_VARYING, _) => counted(38, parameter, Kind::Varying),
            (SQL_BLOB, _) => counted(38, &Described { length: 32_765, ..parameter.clone() }, Kind::Varying),
            _ => text_of_value(),
        }))
    }

    fn of(fields: impl Iterator<Item = (Vec<u8>, Kind, usize)>) -> Format {
        let mut format = Format::default();
        let mut body = Vec::new();
        for (blr, kind, length) in fields {
            body.extend(blr);
            body.extend([7, 0]); // its NULL flag: a short
            format.length += length + 4;
            format.has_blobs |= kind == Kind::Blob;
            format.kinds.push(kind);
        }
        if !format.kinds.is_empty() {
            let count = (2 * format.kinds.len() as u16).to_le_bytes();
            // version5 begin message 0 … end eoc
            format.blr = [&[5, 2, 4, 0], &count[..], &body, &[255, 76]].concat();
        }
        format
    }

    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Rows per fetch, computed as in the server's own client library.
    pub fn batch(&self) -> i32 {
        ((1 << 20) / self.length.max(1)).clamp(10, 1000) as i32
    }

    /// Skips one message and passes each value to `see` (`None`: NULL). Returns `None` if it is incomplete.
    #[inline]
    pub fn walk<'a>(&self, reader: &mut Reader<'a>, mut see: impl FnMut(Kind, Option<&'a [u8]>)) -> Option<()> {
        let nulls = reader.opaque(self.kinds.len().div_ceil(8))?;
        for (at, &kind) in self.kinds.iter().enumerate() {
            if nulls[at / 8] & (1 << (at % 8)) != 0 {
                see(kind, None);
                continue;
            }
            let value = match kind {
                Kind::Text(length) => reader.opaque(length.into())?,
                Kind::Varying => reader.bytes()?,
                Kind::Four => reader.opaque(4)?,
                Kind::Boolean => reader.opaque(1)?,
                Kind::Eight | Kind::Blob => reader.opaque(8)?,
                Kind::Sixteen => reader.opaque(16)?,
            };
            see(kind, Some(value));
        }
        Some(())
    }

    /// Encodes one message of parameters. An error if a value does not fit its description.
    #[inline]
    pub fn write<'a>(&self, outbox: &mut Vec<u8>, values: impl Iterator<Item = Parameter<'a>>) -> Result<()> {
        let nulls = self.kinds.len().div_ceil(8);
        let start = outbox.len();
        outbox.resize(start + nulls + padding(nulls), 0);
        for (at, (&kind, value)) in self.kinds.iter().zip(values).enumerate() {
            match (kind, value) {
                (_, Parameter::Null) => outbox[start + at / 8] |= 1 << (at % 8),
                (Kind::Varying, Parameter::Boolean(_) | Parameter::Real(_)) => {
                    outbox.bytes(value.text(&mut Room::default()).unwrap_or_default());
                }
                (Kind::Varying, Parameter::Text(text) | Parameter::Bytes(text)) => outbox.bytes(text),
                (Kind::Varying, Parameter::Integer(value)) => digits(outbox, value),
                (kind, value) => {
                    let number = match value {
                        Parameter::Integer(value) => Some(value),
                        Parameter::Text(text) => {
                            std::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok())
                        }
                        Parameter::Real(value) if value.fract() == 0.0 => Some(value as i64),
                        Parameter::Boolean(value) => Some(value.into()),
                        Parameter::Bytes(_) | Parameter::Real(_) | Parameter::Null => None,
                    };
                    let fits = |number: i64| kind == Kind::Eight || i32::try_from(number).is_ok();
                    match number.filter(|number| fits(*number)) {
                        Some(number) if kind == Kind::Eight => outbox.long(number),
                        Some(number) => outbox.int(number as i32),
                        None => return Err(Failure::statement("a parameter is not an integer of the column's size")),
                    }
                }
            }
        }
        Ok(())
    }
}

fn counted(blr: u8, described: &Described, kind: Kind) -> (Vec<u8>, Kind, usize) {
    let length = (described.length as u16).to_le_bytes();
    // Uses the described character set; convertible types were described in our connection's character set.
    let set = described.sub_type as u16 as u8;
    (vec![blr, set, 0, length[0], length[1]], kind, usize::from(described.length as u16) + 2)
}

fn text_of_value() -> (Vec<u8>, Kind, usize) {
    let length = TEXT_OF_VALUE.to_le_bytes();
    (vec![38, ASCII, 0, length[0], length[1]], Kind::Varying, TEXT_OF_VALUE as usize + 2)
}

/// A number's decimal digits as text.
#[inline]
fn digits(outbox: &mut Vec<u8>, value: i64) {
    outbox.bytes(decimal(value, &mut [0; DIGITS]));
}

/// Items requested when a statement is prepared.
pub const PREPARE_ITEMS: [u8; 19] = [21, 4, 7, 9, 11, 12, 13, 14, 19, 8, 5, 7, 9, 11, 12, 13, 14, 8, 1];

/// Most columns or parameters of a statement: a message counts twice as many in two bytes.
const MOST_FIELDS: usize = 32_767;

/// A prepared statement's kind, columns and parameters.
#[derive(Debug, Default, PartialEq)]
pub struct Description {
    pub kind: i32,
    pub columns: Vec<Described>,
    pub parameters: Vec<Described>,
}

/// Parses the response to PREPARE_ITEMS.
pub fn describe(info: &[u8]) -> Result<Description> {
    let mut found = Description::default();
    let (mut rest, mut of_columns, mut at) = (info, true, 0usize);
    while let Some((&item, after)) = rest.split_first() {
        rest = after;
        match item {
            1 => return Ok(found),
            2 => return Err(Failure::statement("it has more columns or parameters than the agent understands")),
            4 => of_columns = true,
            5 => of_columns = false,
            8 => {}
            _ => {
                let length = usize::from(u16::from_le_bytes([*rest.first().unwrap_or(&0), *rest.get(1).unwrap_or(&0)]));
                let value = rest.get(2..2 + length).unwrap_or_default();
                rest = rest.get(2 + length..).unwrap_or_default();
                let number = value.iter().rev().fold(0i64, |sum, byte| sum << 8 | i64::from(*byte));
                // Two's complement of the length.
                let number = if length == 2 { i64::from(number as i16) } else { i64::from(number as i32) } as i32;
                let fields = if of_columns { &mut found.columns } else { &mut found.parameters };
                match item {
                    21 => found.kind = number,
                    9 => {
                        at = (number.max(1) - 1) as usize;
                        if at >= MOST_FIELDS {
                            return Err(Failure::statement("the server describes more columns than a statement has"));
                        }
                        fields.resize_with(fields.len().max(at + 1), Described::default);
                    }
                    7 => {}
                    _ => {
                        let Some(field) = fields.get_mut(at) else { continue };
                        match item {
                            11 => field.sql_type = number,
                            12 => field.sub_type = number,
                            13 => field.scale = number,
                            14 => field.length = number,
                            19 => field.name = String::from_utf8_lossy(value).into_owned(),
                            _ => {}
                        }
                    }
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(sql_type: i32, length: i32) -> Described {
        Described { sql_type, length, ..Described::default() }
    }

    #[test]
    fn a_message_is_a_bitmap_of_nulls_and_the_values_that_are_none() {
        let columns = [column(497, 4), column(449, 20), column(453, 3), column(521, 8), column(581, 8)];
        let format = Format::native(&columns);
        assert!(format.has_blobs);
        let mut outbox = Vec::new();
        outbox.opaque(&[0b0001_0001]); // the first and the last are NULL
        outbox.bytes(b"hello");
        outbox.opaque(b"abc");
        outbox.long(77);
        let mut seen = Vec::new();
        let mut reader = Reader::new(&outbox);
        format.walk(&mut reader, |kind, value| seen.push((kind, value.map(<[u8]>::to_vec)))).unwrap();
        let wanted = [
            (Kind::Four, None),
            (Kind::Varying, Some(b"hello".to_vec())),
            (Kind::Text(3), Some(b"abc".to_vec())),
            (Kind::Blob, Some(77i64.to_be_bytes().to_vec())),
            (Kind::Eight, None),
        ];
        assert_eq!(seen, wanted);
        assert_eq!(reader.at(), outbox.len());
        for end in 0..outbox.len() {
            assert!(format.walk(&mut Reader::new(&outbox[..end]), |_, _| {}).is_none(), "{end}");
        }
    }

    #[test]
    fn parameters_travel_in_the_described_type_or_as_text() {
        let format = Format::parameters(&[column(496, 4), column(580, 8), column(448, 40), column(480, 8)]);
        let mut outbox = Vec::new();
        let values = [Parameter::Integer(-7), Parameter::Text(b"8"), Parameter::Text(b"ab"), Parameter::Integer(-90)];
        format.write(&mut outbox, values.into_iter()).unwrap();
        assert_eq!(outbox, b"\0\0\0\0\xff\xff\xff\xf9\0\0\0\0\0\0\0\x08\0\0\0\x02ab\0\0\0\0\0\x03-90\0");
        let too_large = [Parameter::Integer(1 << 40)];
        assert!(format.write(&mut Vec::new(), too_large.into_iter()).is_err());
        assert!(format.write(&mut Vec::new(), [Parameter::Text(b"x")].into_iter()).is_err());
    }

    #[test]
    fn integers_travel_as_their_decimal_digits_where_text_is_wanted() {
        for value in [0, 7, -1, 1_234_567_890, i64::MAX, i64::MIN] {
            let mut outbox = Vec::new();
            digits(&mut outbox, value);
            assert_eq!(Reader::new(&outbox).bytes(), Some(value.to_string().as_bytes()));
        }
    }

    #[test]
    fn the_description_of_a_statement_is_read() {
        let item = |item: u8, value: &[u8]| [&[item], &(value.len() as u16).to_le_bytes()[..], value].concat();
        let number = |which: u8, value: i32| item(which, &value.to_le_bytes());
        let info = [
            number(21, 1),
            vec![4],
            number(7, 1),
            number(9, 1),
            number(11, 497),
            number(12, 0),
            number(13, -2),
            number(14, 4),
            item(19, b"BALANCE"),
            vec![8, 5],
            number(7, 1),
            number(9, 1),
            number(11, 448),
            number(14, 80),
            vec![8, 1],
        ]
        .concat();
        let found = describe(&info).unwrap();
        assert_eq!(found.kind, 1);
        let wanted = Described { sql_type: 497, scale: -2, length: 4, name: "BALANCE".into(), ..Described::default() };
        assert_eq!(found.columns, [wanted]);
        assert_eq!(found.parameters, [column(448, 80)]);
        assert!(describe(&[2]).is_err());
    }

    #[test]
    fn a_description_of_more_columns_than_a_statement_has_is_refused() {
        let of_column = |number: i32| [&[4, 9, 4, 0][..], &number.to_le_bytes(), &[1]].concat();
        assert_eq!(describe(&of_column(32_767)).unwrap().columns.len(), 32_767);
        assert!(describe(&of_column(32_768)).is_err());
        // As many as would take 100 GB.
        assert!(describe(&of_column(i32::MAX)).is_err());
    }

    #[test]
    fn a_negative_length_is_read_as_the_server_would() {
        assert_eq!(Format::native(&[column(448, -1)]).length, 65_535 + 2 + 4);
    }

    #[test]
    fn a_fetch_asks_for_no_more_than_the_server_library_would() {
        assert_eq!(Format::native(&[column(496, 4)]).batch(), 1000);
        assert_eq!(Format::native(&[column(448, 32_000)]).batch(), 32);
        assert_eq!(Format::native(&vec![column(448, 32_000); 9]).batch(), 10);
    }
}
