import FuzzSupport
import Rules

/// No file of a time zone ends the process, and no offset of one is more than a day and two hours, at any time.
@_cdecl("FuzzTimeZone_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        guard let zone = try? TimeZoneData(bytes) else { return 0 }
        var at: Int64 = 1
        for _ in 0..<62 {
            for moment in [at, -at] {
                precondition(abs(zone.offset(at: moment)) <= 26 * 3600, "an offset is too large")
            }
            at *= 2
        }
        return 0
    }
}
