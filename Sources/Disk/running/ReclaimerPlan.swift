/// Which records of a victim are copied forward, beside those that are pinned: the most used, of these the youngest, up to
/// so many bytes. Two walks over the victim, and no list of its records.
struct KeepPlan: Sendable {
    /// Marks are 1, 2 and 3; what has 0 was not used.
    private static let markMax: UInt8 = 3
    private var isAll = false
    /// Bytes that may be copied.
    private var left: UInt64
    /// By use mark, of all records of the victim.
    private var bytes: [UInt64] = [0, 0, 0, 0]
    /// From this mark on all are kept.
    private var markMin: UInt8 = 4
    /// With the mark below that, so many bytes of the oldest are not kept, and those after them are.
    private var skipped: UInt64 = 0

    init(usedBytesMax: UInt64) { left = usedBytesMax }

    /// All that is live.
    static var all: KeepPlan {
        var plan = KeepPlan(usedBytesMax: .max)
        plan.isAll = true
        return plan
    }

    /// On the first walk, for each live record.
    mutating func count(_ length: UInt64, _ useMark: UInt8) { bytes[Int(min(useMark, Self.markMax))] += length }

    mutating func decide() {
        var room = left
        while markMin > 1, bytes[Int(markMin) - 1] <= room {
            markMin -= 1
            room -= bytes[Int(markMin)]
        }
        if markMin > 1 { skipped = bytes[Int(markMin) - 1] - room }
    }

    /// On the second walk, for each live record. Uses of between the walks are heard, but no more is kept than was planned.
    mutating func keeps(_ length: UInt64, _ useMark: UInt8) -> Bool {
        if isAll { return true }
        let mark = min(useMark, Self.markMax)
        guard mark > 0, mark + 1 >= markMin, length <= left else { return false }
        if mark < markMin {
            guard skipped == 0 else {
                skipped -= min(skipped, length)
                return false
            }
        }
        left -= length
        return true
    }
}
