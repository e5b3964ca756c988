import Framing
import FuzzSupport

/// Any client comes to an end or waits, whether it has to log in or not; and what follows does not depend on how its bytes arrive.

@_cdecl("FuzzSocksServer_main")
public func entry(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    unsafe fuzz(count, arguments) { start, count in
        let bytes = unsafe input(start, count)
        for password in SocksServerDialogue.Password.allCases {
            let steps = play([bytes], password)
            precondition(steps == play(bytes.map { [$0] }, password), "the split shows")
            guard case .connect(.name(let name, let port))? = steps.last else { continue }
            let request = [UInt8(name.count)] + name + [UInt8(port >> 8), UInt8(port & 0xFF)]
            precondition(contains(bytes, request), "a name that the client has not sent")
        }
        return 0
    }
}

/// All steps but the waiting, up to the last.
private func play(_ pieces: [[UInt8]], _ password: SocksServerDialogue.Password) -> [SocksServerDialogue.Step] {
    var dialogue = SocksServerDialogue(password: password)
    var steps: [SocksServerDialogue.Step] = []
    for piece in pieces {
        var step = dialogue.on(piece)
        while step != .wait {
            steps.append(step)
            switch step {
            case .send: step = dialogue.on([])
            case .logIn: step = dialogue.checked(isRight: true)
            case .connect, .refuse: return steps
            case .wait: break
            }
        }
    }
    return steps
}

private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
    bytes.indices.contains { bytes[$0...].starts(with: part) }
}
