/// Decides which records of a victim are copied forward in addition to the pinned ones: the most used, and of those the
/// youngest, up to a limit in bytes. It takes two walks over the victim, and no list of its records.
struct KeepPlan: Sendable {
    /// Use marks are 1 to 3; a record with 0 was not used.
    private static let markMax: UInt8 = 3
    private var isAll = false
    /// How many bytes may still be copied.
    private var left: UInt64
    /// The bytes of all records of the victim, by use mark.
    private var bytes: [UInt64] = [0, 0, 0, 0]
    /// All records with at least this mark are kept.
    private var markMin: UInt8 = 4
    /// Of the records with the mark just below: this many bytes, of the oldest records, are not kept.
    private var skipped: UInt64 = 0

    init(usedBytesMax: UInt64) { left = usedBytesMax }

    /// The plan that keeps everything live.
    static var all: KeepPlan {
        var plan = KeepPlan(usedBytesMax: .max)
        plan.isAll = true
        return plan
    }

    /// Called on the first walk, for each live record.
    mutating func count(_ length: UInt64, _ useMark: UInt8) {
        precondition(length > 0, "a record takes space")
        bytes[Int(min(useMark, Self.markMax))] += length
    }

    mutating func decide() {
        var room = left
        while markMin > 1, bytes[Int(markMin) - 1] <= room {
            markMin -= 1
            room -= bytes[Int(markMin)]
        }
        precondition((1...4).contains(markMin), "marks are 1 to 3, and 4 keeps nothing")
        if markMin > 1 { skipped = bytes[Int(markMin) - 1] - room }
    }

    /// Called on the second walk, for each live record. It sees uses that happened between the walks, but never keeps more than
    /// was planned.
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
