import Foundation
import Glibc

/// Holds threads until it is opened; then for ever open. Gives way by itself after a minute.
final class Gate: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func wait() {
        if semaphore.wait(timeout: .now() + 60) == .success { semaphore.signal() }
    }

    func open() { semaphore.signal() }
}

/// Whether this program, and so the larder beside it, was built with a sanitizer.
let isSanitized = unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
