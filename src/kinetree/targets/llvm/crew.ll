; The crew: threads that wait in native code, and the loops that share the samples of a batch with them.
;
; abi.py describes posts, states, shares and jobs (Post, State, Share, Job), and has the numbers that stand here by their
; names, after a dollar sign. Tables are words of 8 bytes each. Times are in nanoseconds.

declare i32 @kt_sem_wait(ptr)
declare i32 @kt_sem_post(ptr)
declare i32 @kt_clock_gettime(i32, ptr)
declare i32 @kt_fegetenv(ptr)
declare i32 @kt_fesetenv(ptr)
declare i32 @kt_feraiseexcept(i32)
declare i32 @kt_feclearexcept(i32)
declare i32 @kt_fetestexcept(i32)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
$PAUSE_DECLARATION

; --- Jobs: a batch as portions, which the caller and the threads take one after the other ---

; Run the kernel on one portion; return its number of samples.
define internal i64 @portion(ptr %job, i64 %index) {
entry:
  %place = alloca [$CREW_ARRAYS x i64]
  %count = alloca i64
  %arrays_at = getelementptr i64, ptr %job, i64 $Job.ARRAYS
  %arrays = load i64, ptr %arrays_at
  %pointers_at = getelementptr i64, ptr %job, i64 $Job.POINTERS
  %pointers = load ptr, ptr %pointers_at
  %steps_at = getelementptr i64, ptr %job, i64 $Job.STEPS
  %steps = load ptr, ptr %steps_at
  %axes_at = getelementptr i64, ptr %job, i64 $Job.AXES
  %axes = load i64, ptr %axes_at
  %shape_at = getelementptr i64, ptr %job, i64 $Job.SHAPE
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr i64, ptr %job, i64 $Job.STRIDES
  %strides = load ptr, ptr %strides_at
  %inner_at = getelementptr i64, ptr %job, i64 $Job.INNER
  %inner = load i64, ptr %inner_at
  %piece_at = getelementptr i64, ptr %job, i64 $Job.PIECE
  %piece = load i64, ptr %piece_at
  %pieces_at = getelementptr i64, ptr %job, i64 $Job.PIECES
  %pieces = load i64, ptr %pieces_at
  %number = urem i64 %index, %pieces
  %row = udiv i64 %index, %pieces
  %first = mul i64 %number, %piece
  %left = sub i64 %inner, %first
  %n = call i64 @llvm.smin.i64(i64 %piece, i64 %left)
  store i64 %n, ptr %count
  br label %next_start
next_start:  ; each array begins at the first sample of the portion
  %k = phi i64 [ 0, %entry ], [ %k_after, %start ]
  %more_starts = icmp slt i64 %k, %arrays
  br i1 %more_starts, label %start, label %next_axis
start:
  %pointer_at = getelementptr i64, ptr %pointers, i64 %k
  %pointer = load i64, ptr %pointer_at
  %step_at = getelementptr i64, ptr %steps, i64 %k
  %step = load i64, ptr %step_at
  %skipped = mul i64 %first, %step
  %begin = add i64 %pointer, %skipped
  %begin_at = getelementptr i64, ptr %place, i64 %k
  store i64 %begin, ptr %begin_at
  %k_after = add i64 %k, 1
  br label %next_start
next_axis:  ; and is moved along the other axes, the last of which changes first
  %d = phi i64 [ 0, %next_start ], [ %d_after, %next_move ]
  %rest = phi i64 [ %row, %next_start ], [ %rest_after, %next_move ]
  %more_axes = icmp slt i64 %d, %axes
  br i1 %more_axes, label %axis, label %run
axis:
  %d_after = add i64 %d, 1
  %at = sub i64 %axes, %d_after
  %length_at = getelementptr i64, ptr %shape, i64 %at
  %length = load i64, ptr %length_at
  %place_along = urem i64 %rest, %length
  %rest_after = udiv i64 %rest, %length
  br label %next_move
next_move:
  %j = phi i64 [ 0, %axis ], [ %j_after, %move ]
  %more_moves = icmp slt i64 %j, %arrays
  br i1 %more_moves, label %move, label %next_axis
move:
  %own_strides_at = getelementptr ptr, ptr %strides, i64 %j
  %own_strides = load ptr, ptr %own_strides_at
  %stride_at = getelementptr i64, ptr %own_strides, i64 %at
  %stride = load i64, ptr %stride_at
  %distance = mul i64 %place_along, %stride
  %moved_at = getelementptr i64, ptr %place, i64 %j
  %old = load i64, ptr %moved_at
  %new = add i64 %old, %distance
  store i64 %new, ptr %moved_at
  %j_after = add i64 %j, 1
  br label %next_move
run:
  %kernel_at = getelementptr i64, ptr %job, i64 $Job.KERNEL
  %kernel = load ptr, ptr %kernel_at
  %data_at = getelementptr i64, ptr %job, i64 $Job.DATA
  %data = load ptr, ptr %data_at
  call void %kernel(ptr %place, ptr %count, ptr %steps, ptr %data)
  ret i64 %n
}

; Run portions until none is left; return their number of samples.
define internal i64 @portions(ptr %job) {
entry:
  %portions_at = getelementptr i64, ptr %job, i64 $Job.PORTIONS
  %portions = load i64, ptr %portions_at
  %grab_at = getelementptr i64, ptr %job, i64 $Job.GRAB
  %grab = load i64, ptr %grab_at
  %next_at = getelementptr i64, ptr %job, i64 $Job.NEXT
  br label %take
take:
  %done = phi i64 [ 0, %entry ], [ %done_so_far, %next ]
  %first = atomicrmw add ptr %next_at, i64 %grab monotonic
  %behind = add i64 %first, %grab
  %end = call i64 @llvm.smin.i64(i64 %portions, i64 %behind)
  %is_some = icmp slt i64 %first, %portions
  br i1 %is_some, label %next, label %leave
next:
  %index = phi i64 [ %first, %take ], [ %after, %one ]
  %done_so_far = phi i64 [ %done, %take ], [ %done_after, %one ]
  %more = icmp slt i64 %index, %end
  br i1 %more, label %one, label %take
one:
  %n = call i64 @portion(ptr %job, i64 %index)
  %done_after = add i64 %done_so_far, %n
  %after = add i64 %index, 1
  br label %next
leave:
  ret i64 %done
}

; Divide a job of some rows into portions; about `grabbed` samples are taken at once.
define internal void @plan(ptr %job, i64 %rows, i64 %most, double %grabbed) {
entry:
  %inner_at = getelementptr i64, ptr %job, i64 $Job.INNER
  %inner = load i64, ptr %inner_at
  %piece = call i64 @llvm.smin.i64(i64 %inner, i64 %most)
  %piece_at = getelementptr i64, ptr %job, i64 $Job.PIECE
  store i64 %piece, ptr %piece_at
  %less_one = sub i64 %piece, 1
  %rounded = add i64 %inner, %less_one
  %pieces = udiv i64 %rounded, %piece
  %pieces_at = getelementptr i64, ptr %job, i64 $Job.PIECES
  store i64 %pieces, ptr %pieces_at
  %portions = mul i64 %pieces, %rows
  %portions_at = getelementptr i64, ptr %job, i64 $Job.PORTIONS
  store i64 %portions, ptr %portions_at
  %piece_number = sitofp i64 %piece to double
  %ratio = fdiv double %grabbed, %piece_number
  %whole = fptosi double %ratio to i64
  %grab = call i64 @llvm.smax.i64(i64 1, i64 %whole)
  %grab_at = getelementptr i64, ptr %job, i64 $Job.GRAB
  store i64 %grab, ptr %grab_at
  ret void
}

; --- Threads: they wait for offers, at first without sleep, and take portions of jobs ---

; Return the time.
define internal i64 @now() {
entry:
  %time = alloca [2 x i64]
  %unused = call i32 @kt_clock_gettime(i32 1, ptr %time)  ; CLOCK_MONOTONIC
  %seconds = load i64, ptr %time
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %rest, %whole
  ret i64 %all
}

; Do nothing for a moment, so that the other thread of the core can run.
define internal void @pause() {
  $PAUSE
  ret void
}

; Replace a word if it has the expected value; return whether it had.
define internal i1 @changed(ptr %place, i64 %before, i64 %after) {
  %pair = cmpxchg ptr %place, i64 %before, i64 %after seq_cst seq_cst
  %done = extractvalue { i64, i1 } %pair, 1
  ret i1 %done
}

; Wait for a semaphore; signals interrupt that.
define internal void @sleep(ptr %semaphore) {
entry:
  br label %again
again:
  %found = call i32 @kt_sem_wait(ptr %semaphore)
  %is_interrupted = icmp ne i32 %found, 0
  br i1 %is_interrupted, label %again, label %awake
awake:
  ret void
}

; Wait until a state begins (`expected`) or ends (not `expected`), without sleep, at most SPIN; return whether it did.
define internal i1 @watch(ptr %state_at, i64 %state, i1 %expected) {
entry:
  %start = call i64 @now()
  br label %again
again:
  call void @pause()
  %found = load atomic i64, ptr %state_at acquire, align 8
  %is_there = icmp eq i64 %found, %state
  %reached = icmp eq i1 %is_there, %expected
  br i1 %reached, label %yes, label %wait
wait:
  %now = call i64 @now()
  %waited = sub i64 %now, %start
  %has_time = icmp slt i64 %waited, $SPIN
  br i1 %has_time, label %again, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; The function of a thread, which never returns.
define void @work(ptr %post) {
entry:
  %state_at = getelementptr i64, ptr %post, i64 $Post.STATE
  %job_at = getelementptr i64, ptr %post, i64 $Post.JOB
  %wake_at = getelementptr i64, ptr %post, i64 $Post.WAKE
  %done_at = getelementptr i64, ptr %post, i64 $Post.DONE
  br label %idle
idle:
  %is_offered = call i1 @watch(ptr %state_at, i64 $State.OFFERED, i1 true)
  br i1 %is_offered, label %take, label %rest
rest:
  %may_sleep = call i1 @changed(ptr %state_at, i64 $State.IDLE, i64 $State.SLEEPING)
  br i1 %may_sleep, label %sleep, label %idle
sleep:
  call void @sleep(ptr %wake_at)
  br label %idle
take:
  %is_taken = call i1 @changed(ptr %state_at, i64 $State.OFFERED, i64 $State.TAKEN)
  br i1 %is_taken, label %run, label %idle
run:
  %job = load ptr, ptr %job_at
  %environment = getelementptr i64, ptr %job, i64 $Job.ENVIRONMENT  ; rounding, and numbers near zero
  %set = call i32 @kt_fesetenv(ptr %environment)
  %cleared = call i32 @kt_feclearexcept(i32 $ALL_FLAGS)
  %samples = call i64 @portions(ptr %job)
  %raised = call i32 @kt_fetestexcept(i32 $REPORTED_FLAGS)
  %flags = zext i32 %raised to i64
  %flags_at = getelementptr i64, ptr %job, i64 $Job.FLAGS
  %old_flags = atomicrmw or ptr %flags_at, i64 %flags monotonic
  %before = atomicrmw xchg ptr %state_at, i64 $State.IDLE seq_cst
  %is_awaited = icmp eq i64 %before, $State.AWAITED
  br i1 %is_awaited, label %tell, label %idle
tell:
  %told = call i32 @kt_sem_post(ptr %done_at)
  br label %idle
}

; Offer a job to a thread, unless another caller uses it; return whether it was offered.
define internal i1 @offer(ptr %post, ptr %job) {
entry:
  %owner_at = getelementptr i64, ptr %post, i64 $Post.OWNER
  %is_free = call i1 @changed(ptr %owner_at, i64 0, i64 1)
  br i1 %is_free, label %give, label %used
give:
  %job_at = getelementptr i64, ptr %post, i64 $Post.JOB
  store ptr %job, ptr %job_at
  %state_at = getelementptr i64, ptr %post, i64 $Post.STATE
  %before = atomicrmw xchg ptr %state_at, i64 $State.OFFERED seq_cst
  %sleeps = icmp eq i64 %before, $State.SLEEPING
  br i1 %sleeps, label %wake, label %offered
wake:
  %wake_at = getelementptr i64, ptr %post, i64 $Post.WAKE
  %woken = call i32 @kt_sem_post(ptr %wake_at)
  br label %offered
offered:
  ret i1 true
used:
  ret i1 false
}

; Withdraw an offer, or wait for the end of the work if it was taken.
define internal void @settle(ptr %post) {
entry:
  %state_at = getelementptr i64, ptr %post, i64 $Post.STATE
  %is_withdrawn = call i1 @changed(ptr %state_at, i64 $State.OFFERED, i64 $State.IDLE)
  br i1 %is_withdrawn, label %free, label %taken
taken:
  %is_done = call i1 @watch(ptr %state_at, i64 $State.TAKEN, i1 false)
  br i1 %is_done, label %free, label %wait
wait:
  %is_at_work = call i1 @changed(ptr %state_at, i64 $State.TAKEN, i64 $State.AWAITED)
  br i1 %is_at_work, label %sleep, label %free
sleep:
  %done_at = getelementptr i64, ptr %post, i64 $Post.DONE
  call void @sleep(ptr %done_at)
  br label %free
free:
  %owner_at = getelementptr i64, ptr %post, i64 $Post.OWNER
  store atomic i64 0, ptr %owner_at release, align 8
  ret void
}

; --- Shares: the division of a batch by the time of its samples ---

; Keep the time per sample: the shortest one, because a call may be interrupted.
define internal void @learn(ptr %share, i64 %start, i64 %samples) {
entry:
  %now = call i64 @now()
  %waited = sub i64 %now, %start
  %taken = call i64 @llvm.smax.i64(i64 1, i64 %waited)
  %time = sitofp i64 %taken to double
  %count = sitofp i64 %samples to double
  %found = fdiv double %time, %count
  %pace_at = getelementptr i64, ptr %share, i64 $Share.PACE
  %pace = load double, ptr %pace_at
  %is_less = fcmp olt double %found, %pace
  %is_first = fcmp oeq double %pace, 0.0
  %is_better = or i1 %is_less, %is_first
  br i1 %is_better, label %keep, label %leave
keep:
  store double %found, ptr %pace_at
  br label %leave
leave:
  ret void
}

; Return the number of samples that take the time of a portion.
define internal double @samples(ptr %share) {
  %portion_at = getelementptr i64, ptr %share, i64 $Share.PORTION
  %portion = load double, ptr %portion_at
  %pace_at = getelementptr i64, ptr %share, i64 $Share.PACE
  %pace = load double, ptr %pace_at
  %samples = fdiv double %portion, %pace
  ret double %samples
}

; Divide a job into portions of about the same time, of whole grains; long results bypass the caches in each of them
; if they do in the whole batch.
define internal void @divide(ptr %share, ptr %job, i64 %rows) {
  %inner_at = getelementptr i64, ptr %job, i64 $Job.INNER
  %inner = load i64, ptr %inner_at
  %streamed_at = getelementptr i64, ptr %share, i64 $Share.STREAMED
  %streamed = load i64, ptr %streamed_at
  %twice = mul i64 %streamed, 2
  %is_long = icmp sge i64 %inner, %twice
  %least = select i1 %is_long, i64 %streamed, i64 0
  %samples = call double @samples(ptr %share)
  %timed = fptosi double %samples to i64
  %wanted = call i64 @llvm.smax.i64(i64 %least, i64 %timed)
  %grain_at = getelementptr i64, ptr %share, i64 $Share.GRAIN
  %grain = load i64, ptr %grain_at
  %whole = sdiv i64 %wanted, %grain
  %grains = call i64 @llvm.smax.i64(i64 1, i64 %whole)
  %piece = mul i64 %grains, %grain
  call void @plan(ptr %job, i64 %rows, i64 %piece, double %samples)
  ret void
}

; Measure the time of a sample by the first portion, and divide the rest of the job.
define internal void @try(ptr %share, ptr %job, i64 %rows) {
  call void @plan(ptr %job, i64 %rows, i64 $TRIAL, double 1.0)
  %start = call i64 @now()
  %n = call i64 @portion(ptr %job, i64 0)
  call void @learn(ptr %share, i64 %start, i64 %n)
  %samples = call double @samples(ptr %share)
  call void @plan(ptr %job, i64 %rows, i64 $TRIAL, double %samples)
  %next_at = getelementptr i64, ptr %job, i64 $Job.NEXT
  store i64 1, ptr %next_at
  ret void
}

; Offer a job to as many threads as are free, at most `others`; store their posts, and return their number.
define internal i64 @offer_all(ptr %share, ptr %job, i64 %others, ptr %used) {
entry:
  %environment = getelementptr i64, ptr %job, i64 $Job.ENVIRONMENT
  %kept = call i32 @kt_fegetenv(ptr %environment)
  %count_at = getelementptr i64, ptr %share, i64 $Share.COUNT
  %count = load ptr, ptr %count_at
  %size = load atomic i64, ptr %count acquire, align 8
  %posts_at = getelementptr i64, ptr %share, i64 $Share.POSTS
  %posts = load ptr, ptr %posts_at
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k_after, %one ]
  %offers = phi i64 [ 0, %entry ], [ %offers_after, %one ]
  %has_post = icmp slt i64 %k, %size
  %wants_more = icmp slt i64 %offers, %others
  %more = and i1 %has_post, %wants_more
  br i1 %more, label %one, label %done
one:
  %post = getelementptr [$Post.SIZE x i64], ptr %posts, i64 %k
  %used_at = getelementptr ptr, ptr %used, i64 %offers
  store ptr %post, ptr %used_at
  %is_offered = call i1 @offer(ptr %post, ptr %job)
  %counted = zext i1 %is_offered to i64
  %offers_after = add i64 %offers, %counted
  %k_after = add i64 %k, 1
  br label %next
done:
  ret i64 %offers
}

; Run a job of a number of rows, in other threads too if that pays.
define internal void @share(ptr %share, ptr %job, i64 %rows) {
entry:
  %used = alloca [$MOST x ptr]
  %kernel_at = getelementptr i64, ptr %share, i64 $Share.KERNEL
  %kernel = load ptr, ptr %kernel_at
  %job_kernel = getelementptr i64, ptr %job, i64 $Job.KERNEL
  store ptr %kernel, ptr %job_kernel
  %data_at = getelementptr i64, ptr %share, i64 $Share.DATA
  %data = load ptr, ptr %data_at
  %job_data = getelementptr i64, ptr %job, i64 $Job.DATA
  store ptr %data, ptr %job_data
  %arrays_at = getelementptr i64, ptr %share, i64 $Share.ARRAYS
  %arrays = load i64, ptr %arrays_at
  %job_arrays = getelementptr i64, ptr %job, i64 $Job.ARRAYS
  store i64 %arrays, ptr %job_arrays
  %next_at = getelementptr i64, ptr %job, i64 $Job.NEXT
  store i64 0, ptr %next_at
  %flags_at = getelementptr i64, ptr %job, i64 $Job.FLAGS
  store i64 0, ptr %flags_at
  %pace_at = getelementptr i64, ptr %share, i64 $Share.PACE
  %old_pace = load double, ptr %pace_at
  %is_known = fcmp une double %old_pace, 0.0
  br i1 %is_known, label %divide, label %try
divide:
  call void @divide(ptr %share, ptr %job, i64 %rows)
  br label %count
try:
  call void @try(ptr %share, ptr %job, i64 %rows)
  br label %count
count:  ; as many threads as have enough work, are allowed, and find a portion
  %pace = load double, ptr %pace_at
  %inner_at = getelementptr i64, ptr %job, i64 $Job.INNER
  %inner = load i64, ptr %inner_at
  %samples = mul i64 %inner, %rows
  %samples_number = sitofp i64 %samples to double
  %time = fmul double %pace, %samples_number
  %least_at = getelementptr i64, ptr %share, i64 $Share.LEAST
  %least = load double, ptr %least_at
  %ratio = fdiv double %time, %least
  %paid = fptosi double %ratio to i64
  %threads_at = getelementptr i64, ptr %share, i64 $Share.THREADS
  %threads = load i64, ptr %threads_at
  %allowed = call i64 @llvm.smin.i64(i64 %paid, i64 %threads)
  %portions_at = getelementptr i64, ptr %job, i64 $Job.PORTIONS
  %portions = load i64, ptr %portions_at
  %next = load i64, ptr %next_at
  %left = sub i64 %portions, %next
  %all = call i64 @llvm.smin.i64(i64 %allowed, i64 %left)
  %others = sub i64 %all, 1
  %are_useful = icmp sgt i64 %others, 0
  br i1 %are_useful, label %offer, label %run
offer:
  %offers = call i64 @offer_all(ptr %share, ptr %job, i64 %others, ptr %used)
  br label %run
run:
  %offered = phi i64 [ 0, %count ], [ %offers, %offer ]
  %start = call i64 @now()
  %done = call i64 @portions(ptr %job)
  %did_some = icmp sgt i64 %done, 0
  br i1 %did_some, label %learn, label %next_post
learn:
  call void @learn(ptr %share, i64 %start, i64 %done)
  br label %next_post
next_post:
  %k = phi i64 [ 0, %run ], [ 0, %learn ], [ %k_after, %settle ]
  %more = icmp slt i64 %k, %offered
  br i1 %more, label %settle, label %report
settle:
  %used_at = getelementptr ptr, ptr %used, i64 %k
  %post = load ptr, ptr %used_at
  call void @settle(ptr %post)
  %k_after = add i64 %k, 1
  br label %next_post
report:
  %flags = load i64, ptr %flags_at
  %flags32 = trunc i64 %flags to i32
  %is_raised = icmp ne i32 %flags32, 0
  br i1 %is_raised, label %raise, label %leave
raise:
  %raised = call i32 @kt_feraiseexcept(i32 %flags32)
  br label %leave
leave:
  ret void
}

; The inner loop of a gufunc: the kernel itself on few samples.
define void @loop(ptr %args, ptr %dims, ptr %steps, ptr %share) {
entry:
  %job = alloca [$Job.SIZE x i64], align 64
  %n = load i64, ptr %dims
  %pace_at = getelementptr i64, ptr %share, i64 $Share.PACE
  %pace = load double, ptr %pace_at
  %least_at = getelementptr i64, ptr %share, i64 $Share.LEAST
  %least = load double, ptr %least_at
  %worth = fmul double 2.0, %least
  %n_number = sitofp i64 %n to double
  %time = fmul double %pace, %n_number
  %is_short = fcmp olt double %time, %worth
  %is_known = fcmp une double %pace, 0.0
  %is_brief = and i1 %is_short, %is_known
  %grain_at = getelementptr i64, ptr %share, i64 $Share.GRAIN
  %grain = load i64, ptr %grain_at
  %are_few = icmp sle i64 %n, %grain
  %runs_alone = or i1 %is_brief, %are_few
  br i1 %runs_alone, label %alone, label %share_it
alone:
  %kernel_at = getelementptr i64, ptr %share, i64 $Share.KERNEL
  %kernel = load ptr, ptr %kernel_at
  %data_at = getelementptr i64, ptr %share, i64 $Share.DATA
  %data = load ptr, ptr %data_at
  call void %kernel(ptr %args, ptr %dims, ptr %steps, ptr %data)
  ret void
share_it:
  %pointers_at = getelementptr i64, ptr %job, i64 $Job.POINTERS
  store ptr %args, ptr %pointers_at
  %steps_at = getelementptr i64, ptr %job, i64 $Job.STEPS
  store ptr %steps, ptr %steps_at
  %axes_at = getelementptr i64, ptr %job, i64 $Job.AXES
  store i64 0, ptr %axes_at
  %inner_at = getelementptr i64, ptr %job, i64 $Job.INNER
  store i64 %n, ptr %inner_at
  call void @share(ptr %share, ptr %job, i64 1)
  ret void
}

; --- The loop over NumPy arrays with several leading axes ---

; Return whether array k can be read or written; store the bounds of its memory.
define internal i1 @fits(ptr %share, ptr %array, i64 %k, ptr %lead, i64 %axes, i32 %flags, ptr %bounds) {
entry:
  %type_at = getelementptr i8, ptr %array, i64 $Offset.TYPE
  %type = load ptr, ptr %type_at
  %array_type_at = getelementptr i64, ptr %share, i64 $Share.ARRAY_TYPE
  %array_type = load ptr, ptr %array_type_at
  %is_array = icmp eq ptr %type, %array_type
  br i1 %is_array, label %check, label %no
check:
  %dtype_at = getelementptr i8, ptr %array, i64 $Offset.DTYPE
  %dtype = load ptr, ptr %dtype_at
  %share_dtype_at = getelementptr i64, ptr %share, i64 $Share.DTYPE
  %share_dtype = load ptr, ptr %share_dtype_at
  %has_dtype = icmp eq ptr %dtype, %share_dtype
  %flags_at = getelementptr i8, ptr %array, i64 $Offset.FLAGS
  %own_flags = load i32, ptr %flags_at
  %common = and i32 %own_flags, %flags
  %has_flags = icmp eq i32 %common, %flags
  %cores_at = getelementptr i64, ptr %share, i64 $Share.CORES
  %cores = load ptr, ptr %cores_at
  %core = getelementptr [$CORE x i64], ptr %cores, i64 %k
  %core_size = load i64, ptr %core
  %lengths = getelementptr i64, ptr %core, i64 1
  %ndim_at = getelementptr i8, ptr %array, i64 $Offset.NDIM
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %dimensions = add i64 %axes, %core_size
  %has_dimensions = icmp eq i64 %ndim, %dimensions
  %is_plain = and i1 %has_dtype, %has_flags
  %suits = and i1 %is_plain, %has_dimensions
  br i1 %suits, label %measure, label %no
measure:
  %shape_at = getelementptr i8, ptr %array, i64 $Offset.SHAPE
  %shape = load ptr, ptr %shape_at
  %strides_at = getelementptr i8, ptr %array, i64 $Offset.STRIDES
  %strides = load ptr, ptr %strides_at
  %address_at = getelementptr i8, ptr %array, i64 $Offset.DATA
  %address = load i64, ptr %address_at
  br label %next
next:
  %d = phi i64 [ 0, %measure ], [ %d_after, %along ]
  %first = phi i64 [ %address, %measure ], [ %first_after, %along ]
  %last = phi i64 [ %address, %measure ], [ %last_after, %along ]
  %more = icmp slt i64 %d, %ndim
  br i1 %more, label %compare, label %yes
compare:
  %length_at = getelementptr i64, ptr %shape, i64 %d
  %length = load i64, ptr %length_at
  %leads = icmp slt i64 %d, %axes
  %lead_at = getelementptr i64, ptr %lead, i64 %d
  %behind = sub i64 %d, %axes
  %core_at = getelementptr i64, ptr %lengths, i64 %behind
  %wanted_at = select i1 %leads, ptr %lead_at, ptr %core_at
  %wanted = load i64, ptr %wanted_at
  %same = icmp eq i64 %length, %wanted
  %is_some = icmp sgt i64 %length, 0
  %is_right = and i1 %same, %is_some
  br i1 %is_right, label %along, label %no
along:
  %stride_at = getelementptr i64, ptr %strides, i64 %d
  %stride = load i64, ptr %stride_at
  %steps = sub i64 %length, 1
  %span = mul i64 %steps, %stride
  %down = call i64 @llvm.smin.i64(i64 0, i64 %span)
  %up = call i64 @llvm.smax.i64(i64 0, i64 %span)
  %first_after = add i64 %first, %down
  %last_after = add i64 %last, %up
  %d_after = add i64 %d, 1
  br label %next
yes:
  %item_at = getelementptr i64, ptr %share, i64 $Share.ITEM
  %item = load i64, ptr %item_at
  %end = add i64 %last, %item
  store i64 %first, ptr %bounds
  %end_at = getelementptr i64, ptr %bounds, i64 1
  store i64 %end, ptr %end_at
  ret i1 true
no:
  ret i1 false
}

; Return whether the bounds of a result are apart from those of all inputs.
define internal i1 @apart(ptr %share, ptr %bounds, ptr %result) {
entry:
  %first = load i64, ptr %result
  %end_at = getelementptr i64, ptr %result, i64 1
  %end = load i64, ptr %end_at
  %inputs_at = getelementptr i64, ptr %share, i64 $Share.INPUTS
  %inputs = load i64, ptr %inputs_at
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %after, %compare ]
  %more = icmp slt i64 %k, %inputs
  br i1 %more, label %compare, label %yes
compare:
  %other_at = getelementptr [2 x i64], ptr %bounds, i64 %k
  %other_first = load i64, ptr %other_at
  %other_end_at = getelementptr i64, ptr %other_at, i64 1
  %other_end = load i64, ptr %other_end_at
  %before = icmp ule i64 %end, %other_first
  %behind = icmp ule i64 %other_end, %first
  %is_apart = or i1 %before, %behind
  %after = add i64 %k, 1
  br i1 %is_apart, label %next, label %no
yes:
  ret i1 true
no:
  ret i1 false
}

; Share arrays along all their leading axes; return the flags to report, or -1 if NumPy must prepare the arrays.
define i64 @sweep(ptr %share, ptr %arrays, i64 %axes) {
entry:
  %job = alloca [$Job.SIZE x i64], align 64
  %pointers = alloca [$CREW_ARRAYS x i64]
  %strides = alloca [$CREW_ARRAYS x ptr]
  %bounds = alloca [$CREW_ARRAYS x [2 x i64]]
  %steps = alloca [$CREW_STEPS x i64]
  %count_at = getelementptr i64, ptr %share, i64 $Share.ARRAYS
  %count = load i64, ptr %count_at
  %inputs_at = getelementptr i64, ptr %share, i64 $Share.INPUTS
  %inputs = load i64, ptr %inputs_at
  %last = sub i64 %axes, 1
  %result_at = getelementptr ptr, ptr %arrays, i64 %inputs  ; the first result has the leading axes of the batch
  %first_result = load ptr, ptr %result_at
  %lead_at = getelementptr i8, ptr %first_result, i64 $Offset.SHAPE
  %lead = load ptr, ptr %lead_at
  br label %next_array
next_array:
  %k = phi i64 [ 0, %entry ], [ %k_after, %next_core ]
  %free = phi i64 [ %count, %entry ], [ %place, %next_core ]  ; the next free step: those of cores come last
  %more_arrays = icmp slt i64 %k, %count
  br i1 %more_arrays, label %take, label %next_result
take:
  %array_at = getelementptr ptr, ptr %arrays, i64 %k
  %array = load ptr, ptr %array_at
  %own_bounds = getelementptr [2 x i64], ptr %bounds, i64 %k
  %is_result = icmp sge i64 %k, %inputs
  %written = select i1 %is_result, i32 $MAY_WRITE, i32 0
  %flags = or i32 %written, $ALIGNED
  %suits = call i1 @fits(ptr %share, ptr %array, i64 %k, ptr %lead, i64 %axes, i32 %flags, ptr %own_bounds)
  br i1 %suits, label %keep, label %unsuitable
keep:
  %address_at = getelementptr i8, ptr %array, i64 $Offset.DATA
  %address = load i64, ptr %address_at
  %pointer_at = getelementptr i64, ptr %pointers, i64 %k
  store i64 %address, ptr %pointer_at
  %own_at = getelementptr i8, ptr %array, i64 $Offset.STRIDES
  %own = load ptr, ptr %own_at
  %stride_at = getelementptr ptr, ptr %strides, i64 %k
  store ptr %own, ptr %stride_at
  %last_at = getelementptr i64, ptr %own, i64 %last
  %last_step = load i64, ptr %last_at
  %step_at = getelementptr i64, ptr %steps, i64 %k
  store i64 %last_step, ptr %step_at
  %ndim_at = getelementptr i8, ptr %array, i64 $Offset.NDIM
  %ndim32 = load i32, ptr %ndim_at
  %ndim = sext i32 %ndim32 to i64
  %k_after = add i64 %k, 1
  br label %next_core
next_core:
  %d = phi i64 [ %axes, %keep ], [ %d_after, %core ]
  %place = phi i64 [ %free, %keep ], [ %place_after, %core ]
  %more_cores = icmp slt i64 %d, %ndim
  br i1 %more_cores, label %core, label %next_array
core:
  %core_at = getelementptr i64, ptr %own, i64 %d
  %core_step = load i64, ptr %core_at
  %core_step_at = getelementptr i64, ptr %steps, i64 %place
  store i64 %core_step, ptr %core_step_at
  %place_after = add i64 %place, 1
  %d_after = add i64 %d, 1
  br label %next_core
next_result:
  %j = phi i64 [ %inputs, %next_array ], [ %j_after, %result ]
  %more_results = icmp slt i64 %j, %count
  br i1 %more_results, label %result, label %next_axis
result:
  %result_bounds = getelementptr [2 x i64], ptr %bounds, i64 %j
  %j_after = add i64 %j, 1
  %is_apart = call i1 @apart(ptr %share, ptr %bounds, ptr %result_bounds)
  br i1 %is_apart, label %next_result, label %unsuitable
next_axis:
  %axis = phi i64 [ 0, %next_result ], [ %axis_after, %multiply ]
  %rows = phi i64 [ 1, %next_result ], [ %rows_after, %multiply ]
  %length_at = getelementptr i64, ptr %lead, i64 %axis
  %length = load i64, ptr %length_at
  %more_axes = icmp slt i64 %axis, %last
  br i1 %more_axes, label %multiply, label %run
multiply:
  %rows_after = mul i64 %rows, %length
  %axis_after = add i64 %axis, 1
  br label %next_axis
run:
  %job_pointers = getelementptr i64, ptr %job, i64 $Job.POINTERS
  store ptr %pointers, ptr %job_pointers
  %job_steps = getelementptr i64, ptr %job, i64 $Job.STEPS
  store ptr %steps, ptr %job_steps
  %job_strides = getelementptr i64, ptr %job, i64 $Job.STRIDES
  store ptr %strides, ptr %job_strides
  %job_axes = getelementptr i64, ptr %job, i64 $Job.AXES
  store i64 %last, ptr %job_axes
  %job_shape = getelementptr i64, ptr %job, i64 $Job.SHAPE
  store ptr %lead, ptr %job_shape
  %job_inner = getelementptr i64, ptr %job, i64 $Job.INNER
  store i64 %length, ptr %job_inner  ; of the last axis
  %cleared = call i32 @kt_feclearexcept(i32 $ALL_FLAGS)
  call void @share(ptr %share, ptr %job, i64 %rows)
  %raised = call i32 @kt_fetestexcept(i32 $REPORTED_FLAGS)
  %reported = zext i32 %raised to i64
  ret i64 %reported
unsuitable:
  ret i64 -1
}
