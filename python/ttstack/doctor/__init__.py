"""Whether this host can run engines: cards, slots, containers, disks, the kernel's messages, and lost memory."""
