"""The text file of the demo corpus: the log of the harbour's night desk."""

from __future__ import annotations

NOTES = """# Night desk log, November 2024

Kept by whoever has the desk. Times are local. The harbour and all figures are made up for demonstration.

## Friday, 8 November
21:10 Ferry came in nine minutes late because of fog; charging was cut to eight minutes so that it left on time.
23:40 Compressor 3 of the cold store tripped. Restarted by hand after its oil filter was changed; temperature stayed at
minus 21 degrees.

## Saturday, 16 November
19:55 Cruise berth took 9.1 megawatts for two hours, the most so far. Transformer at 78 degrees, alarm is at 95.
22:30 Seal on the slipway of the lifeboat shed. Left alone; it went by itself at four.

## Wednesday, 27 November
02:14 Mainland cable dead. The battery took over in 60 milliseconds, the cold stores went off as planned.
02:40 The dredger reports that its anchor caught something at the third buoy. Work stopped.
05:10 Wind at 12 metres per second, turbines carry the base load and the battery is at 61 percent.
07:26 Mainland cable back by the spare line. Cold stores on again, warmest room at minus 20.3 degrees.

## Saturday, 30 November
20:15 The spare key of the substation hangs in the blue cabinet again, behind the tide tables.
23:00 Month closed: two cable alarms, one of them real; one compressor fault; no injuries.
"""
