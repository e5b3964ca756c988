package import Transaction

/// Looks at the content of a response on its way to where it goes, and may withhold, change or refuse it.
///
/// A piece that is passed on is valid within the call, like the one that was taken.
package protocol ContentFilter: AnyObject {
    /// Takes a piece. Passes on, in order, what may go on now.
    ///
    /// - Returns: false if the content must go no further.
    func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool
    /// All content has come. Passes on what was withheld.
    ///
    /// - Returns: why the content must not be completed. Nil if it may be.
    func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal?
}

/// The filters of one response, in the order in which content goes through them.
package struct ContentFilters {
    private var filters: [any ContentFilter] = []

    package init() {}

    /// With one more filter behind the others.
    package func appending(_ filter: any ContentFilter) -> ContentFilters {
        var longer = self
        longer.filters.append(filter)
        return longer
    }

    /// Passes on what all filters pass on of a piece.
    ///
    /// - Parameter pass: returns false if no more is wanted.
    /// - Returns: false if the content must go no further, or is not wanted.
    package func take(_ piece: UnsafeRawBufferPointer, _ pass: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        unsafe take(piece, from: 0, pass)
    }

    private func take(
        _ piece: UnsafeRawBufferPointer, from index: Int, _ pass: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool {
        guard index < filters.count else { return unsafe pass(piece) }
        return unsafe filters[index].take(piece) { unsafe take($0, from: index + 1, pass) }
    }

    /// All content has come. Passes on what the filters have withheld.
    ///
    /// - Returns: why the content must not be completed, by the first filter that says so.
    package func finish(_ pass: (UnsafeRawBufferPointer) -> Bool) -> Refusal? {
        for (index, filter) in filters.enumerated() {
            if let refusal = unsafe filter.finish({ unsafe take($0, from: index + 1, pass) }) { return refusal }
        }
        return nil
    }
}
