//! Statistics without knowledge of experiments: numbers in, numbers out.
//!
//! # Methods
//!
//! - **MSER-5** cuts the **transient**, the initial piece that is not yet like the rest, where
//!   the standard error of the remaining means of five is least. (White, 1997)
//! - **Batch means**: a confidence interval of a mean from the means of a few long batches, which
//!   are nearly independent although neighbouring operations are not. (Law and Kelton,
//!   *Simulation Modeling and Analysis*)
//! - **Order statistics**: a confidence interval of a percentile from two ranks of the sorted
//!   sample, by the binomial distribution, without assuming a law. (David and Nagaraja, 2003)
//! - **Design effect**: how many times more observations a correlated series needs than an
//!   independent one. Intervals are widened by its square root. (Kish, 1965)
//! - **Kolmogorov–Smirnov**: the largest distance between an empirical and a promised
//!   distribution; here of gaps against the exponential.
//! - **Finite queue**: with room for K operations, the one in service included; one that finds no
//!   room is lost. M/D/1/K and its loss are exact by the chain embedded at the ends of service.
//!   (Tijms, *A First Course in Stochastic Models*, 2003, 9.8)

pub mod buffer;
pub mod change_points;
pub mod correlation;
pub mod course;
pub mod gaps;
pub mod rounds;
pub mod sample;
pub mod stationarity;
pub mod tail;
