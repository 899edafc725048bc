//! Bands of numbers, a fixed number of them per doubling: wide where numbers are large.

/// The band of a number. Numbers below `PER_OCTAVE`, a power of two, have a band each. Above it
/// each doubling has that many bands.
#[inline]
pub(crate) fn band_of<const PER_OCTAVE: u64>(n: u64) -> usize {
    let shift = (n / PER_OCTAVE).checked_ilog2().unwrap_or(0);
    (u64::from(shift) * PER_OCTAVE + (n >> shift)) as usize
}

/// The smallest number of a band; the largest number of all where that is beyond it.
pub(crate) fn band_start<const PER_OCTAVE: u64>(band: usize) -> u64 {
    let band = band as u64;
    let shift = (band / PER_OCTAVE).saturating_sub(1);
    let start = u128::from(band - shift * PER_OCTAVE) << shift;
    u64::try_from(start).unwrap_or(u64::MAX)
}
