/// The sessions of one thread that keep OpenSSL's buffers from one call to the next: one for a record to read, one for a record to write,
/// 34 KiB together.
///
/// A busy session does not allocate them for each record, and an idle one does not keep them: a session without a place takes the next one
/// in turn, and the session that was there gives its buffers back. So there is no timer, and idle sessions keep 4.3 MiB for each worker at most, and as
/// much if there are sessions inside of sessions.
@safe struct BufferHolders {
    /// The most sessions that keep buffers.
    static let placesMax = 128

    /// A session leaves its place before it ends.
    private var places: [Unmanaged<TLSServerSession>?] = unsafe []
    private var next = 0

    /// Gives a session a place, and returns its number.
    mutating func insert(_ session: TLSServerSession) -> Int {
        let place = next
        next = (next + 1) % BufferHolders.placesMax
        let holder = unsafe Unmanaged.passUnretained(session)
        guard unsafe place < places.count else {
            unsafe places.append(holder)
            return place
        }
        let earlier = unsafe places[place]
        unsafe places[place] = unsafe holder
        if let earlier = unsafe earlier { unsafe earlier._withUnsafeGuaranteedRef { $0.giveBuffersBack() } }
        return place
    }

    /// Removes a session that ends.
    mutating func remove(_ place: Int) { unsafe places[place] = nil }
}
