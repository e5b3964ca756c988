/// What an origin does otherwise than in the plainest of answers.
enum Fault: String, CaseIterable, Sendable {
    // As HTTP allows: no answer may suffer.
    case chunked, untilClose, http10, trailers
    case interims, pause, drip
    case closeAnnounced, lateClose
    case noStore, shortLife, extremeLife, oldAge, oddDate
    case otherVary, notModifiedChanges
    // Where the proxy follows redirects, the client sees none.
    case detour

    // The wire
    case cut, reset, silence
    case lengthTooShort, lengthTooLong, badChunk, malformedHead
    case bytesBehind, bodyWhereNone, switchUnasked
    case answersEarly

    // Ranges
    case wholeForRange, otherRange, otherTotal, partTooShort, partTooLong, unlabelledPart, unsatisfiable,
        multipartForOne
    case partUnasked

    // Validators and versions
    case noValidator, weakTag, oddTag, malformedTag
    case notModifiedWithOtherTag, notModifiedWithoutTag, neverNotModified
    case changeBefore, changeBehind

    // Codings and statuses
    case gzipThatIsNone, serverError, notFound, redirect, noContent

    // In place of what is promised: one byte is another one, or all are.
    case wrongByte, wrongBody

    /// HTTP allows it, and nothing a client is told can suffer.
    var isLegal: Bool {
        switch self {
        case .chunked, .untilClose, .http10, .trailers, .interims, .pause, .drip, .closeAnnounced, .lateClose, .noStore,
            .shortLife, .extremeLife, .oldAge, .oddDate, .otherVary, .notModifiedChanges, .detour:
            true
        case .cut, .reset, .silence, .lengthTooShort, .lengthTooLong, .badChunk, .malformedHead, .bytesBehind,
            .bodyWhereNone, .switchUnasked, .answersEarly, .wholeForRange, .otherRange, .otherTotal, .partTooShort,
            .partTooLong, .unlabelledPart, .unsatisfiable, .multipartForOne, .partUnasked, .noValidator, .weakTag,
            .oddTag,
            .malformedTag, .notModifiedWithOtherTag, .notModifiedWithoutTag, .neverNotModified, .changeBefore,
            .changeBehind, .gzipThatIsNone, .serverError, .notFound, .redirect, .noContent, .wrongByte, .wrongBody:
            false
        }
    }

    /// An answer that breaks off, or an error in its place, may be the origin's doing.
    var mayCostAnAnswer: Bool { !isLegal }

    fileprivate static let legal = allCases.filter(\.isLegal)
    /// Nobody could tell that the bytes are wrong, where nothing is promised.
    var isForgery: Bool { self == .wrongByte || self == .wrongBody }
    fileprivate static let others = allCases.filter { !$0.isLegal && !$0.isForgery }
}

/// What an origin does with one request. It follows from the seed, the resource, and how many requests for it came before.
struct Script: Sendable {
    let faults: [Fault]
    /// What the origin has in place of what was promised.
    let forgery: Forgery?
    /// For all that is left to chance in carrying it out.
    var dice: Dice

    init(_ resource: Resource, ask: Int, hasLongSilence: Bool) {
        var dice = Dice(resource.seed, UInt64(resource.number), 0xFA17, UInt64(ask))
        var faults: [Fault] = []
        func add(_ count: Int, of choice: [Fault]) {
            for _ in 0..<count { faults.append(dice.pick(choice)) }
        }
        switch resource.health {
        case .constant:
            add(dice.below(3), of: Fault.legal)
        case .well:
            add(dice.below(3), of: Fault.legal)
            if dice.oneIn(12) { faults.append(.changeBefore) }
        case .flaky:
            add(dice.below(3), of: Fault.legal)
            if dice.oneIn(3) { add(1 + dice.below(2), of: Fault.others) }
            if dice.oneIn(6) { faults += [.cut, .interims] }
        case .bad:
            add(dice.below(3), of: Fault.legal)
            add(dice.below(4), of: Fault.others)
            if dice.oneIn(3) { faults += [dice.pick([.cut, .reset]), .interims] }
        }
        forgery = Forgery(resource, ask: ask)
        if let forgery {
            // The wrong body comes to its end often enough, and slowly enough for others to join.
            if dice.oneIn(2) { faults.removeAll { !$0.isLegal } }
            if dice.oneIn(2) { faults.append(.pause) }
            faults.append(forgery.fault)
        }
        if resource.isPersonal || resource.isPromised {
            faults.removeAll { $0 == .changeBefore || $0 == .changeBehind }
        }
        // Each of these costs the proxy's whole patience.
        if !hasLongSilence || !dice.oneIn(6) { faults.removeAll { $0 == .silence } }
        self.faults = faults
        self.dice = dice
    }

    /// An origin without faults, for what does not go through the proxy's hands.
    init(faultless dice: Dice) {
        faults = []
        forgery = nil
        self.dice = dice
    }

    func has(_ fault: Fault) -> Bool { faults.contains(fault) }
}
