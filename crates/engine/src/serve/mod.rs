//! Servers: those that tests, demos and calibration run against, and what monitoring asks.

pub mod dns;
pub mod exposition;
pub mod http;
pub mod ws;

/// Connections by token: a place in the low half, a generation in the high half. So a late event or
/// timer of a closed connection never meets its successor.
struct ConnectionSlab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for ConnectionSlab<T> {
    fn default() -> ConnectionSlab<T> {
        ConnectionSlab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> ConnectionSlab<T> {
    /// Number of open connections.
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Number of places, free ones included.
    fn places(&self) -> usize {
        self.places.len()
    }

    /// Token of the connection at a place, open or not.
    fn token_at(&self, place: usize) -> u64 {
        u64::from(self.places[place].0) << 32 | place as u64
    }

    /// Adds the connection that `make` makes of its token, which is returned.
    fn insert(&mut self, make: impl FnOnce(u64) -> T) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            (self.places.len() - 1) as u32
        }) as usize;
        let token = self.token_at(place);
        self.places[place].1 = Some(make(token));
        token
    }

    /// The connection's place, unless it is gone.
    fn find(&mut self, token: u64) -> Option<&mut Option<T>> {
        let (generation, content) = self.places.get_mut(token as u32 as usize)?;
        (u64::from(*generation) == token >> 32).then_some(content)
    }

    /// The connection, unless it is gone.
    fn get(&mut self, token: u64) -> Option<&mut T> {
        self.find(token)?.as_mut()
    }

    /// Calls `act` with each open connection.
    fn each(&mut self, act: impl FnMut(&mut T)) {
        self.places.iter_mut().filter_map(|(_, c)| c.as_mut()).for_each(act);
    }

    /// Removes the connection with this token, which is not gone.
    fn remove(&mut self, token: u64) {
        let (generation, content) = &mut self.places[token as u32 as usize];
        *content = None;
        // The highest generation is left to the tokens that are no connection's.
        *generation = (*generation + 1) % u32::MAX;
        self.free.push(token as u32);
    }
}
