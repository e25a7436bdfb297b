#!/bin/sh
# Draw the pictures of docs/field-days.md: simulate what they show into a temporary folder, and draw it.
# FOLDER is where they go; TRANSECT is the command. Same code, same pictures; takes a few minutes.
#   tools/draw-field-days.sh [FOLDER]
set -eu
transect=${TRANSECT:-.venv/bin/transect}
out=${1:-docs/field-days}
days=$(mktemp -d)
trap 'rm -rf "$days"' EXIT
trap 'exit 130' INT TERM

simulate() { # NAME WORLD OPTION...: the name stands in the pictures
    name=$1 && shift
    "$transect" simulate "$@" -o "$days/$name"
}
inject() { # NAME FAULT SEVERITY
    "$transect" inject "$days/clear air" --fault "$2" --severity "$3" -o "$days/$1" >/dev/null
}
draw() { # NAME TITLE DAY OPTION...
    picture=$out/$1.png title=$2 day=$days/$3 && shift 3
    "$transect" draw moment "$day" --title "$title" --dpi 100 --colours 256 -o "$picture" "$@"
}

# Etna: 2 s is the shortest day there is.
simulate etna etna --seconds 2 --scale 0.3 --streams MainCam --streams Lidar
draw etna 'Etna, simulated: MainCam, and the lidar from above and from the side' etna --at +1s --columns 2 \
    --panel MainCam --panel Lidar --panel truth/dem --panel Lidar:side
simulate slope etna --seconds 45 --seed 5 --scale 0.05 --streams 'Gnss/*' --streams 'Platform/*'
"$transect" draw slip "$days/slope" --dpi 100 -o "$out/etna-slip.png"

# Rosario
simulate field rosario --seconds 1 --scale 0.7 --condition depth=true --streams Zed/Left
draw rosario 'Rosario, simulated: the left image, and how far each pixel truly is' field \
    --beside "$days/field/truth/depth" --at 15:00:00.48 --panel Zed/Left --panel left

# Marulan: the static scene of Table 1, and the same 3 s with what was in the air.
simulate 'clear air' marulan --seconds 3 --scale 0.4 --streams 'Laser*' --streams 'Radar*' --streams 'Video*'
inject dust dust 1
inject smoke smoke 1
inject 'heavy rain' rain 1
inject 'light rain' rain 0.5
inject 'after rain' rain 0.25

draw marulan-moment 'Marulan, simulated: what the Argo sees at one time' 'clear air' --at +1s --columns 3 \
    --panel VideoVisual --panel VideoIR --panel RadarSpectrum \
    --panel LaserHorizontal --panel LaserPort --panel LaserVertical --reach 16 --dpi 80
draw marulan-radar 'Marulan, simulated: a turn of the radar, ahead' 'clear air' --at +1s --panel RadarSpectrum \
    --sector 60 --reach 18
draw marulan-table1 'Marulan, simulated: lasers and Table 1' 'clear air' --from +0s --sector 27 --reach 13 \
    --panel LaserHorizontal+LaserPort+LaserStarboard+truth/objects
draw marulan-time 'Marulan, simulated: a laser and the radar over time, in clear air and in dust' 'clear air' \
    --beside "$days/dust" --panel LaserHorizontal:time --panel RadarSpectrum:time --sector 45 --reach 15 --columns 2
draw marulan-visual 'Marulan, simulated: the visual camera at one time, with what is in the air' 'clear air' \
    --beside "$days/dust" --beside "$days/smoke" --beside "$days/heavy rain" \
    --panel VideoVisual --at +1.8s --columns 2 --dpi 90
draw marulan-infrared 'Marulan, simulated: the infra-red camera at that time' 'clear air' \
    --beside "$days/dust" --beside "$days/smoke" --beside "$days/heavy rain" \
    --panel VideoIR --at +1.8s --columns 2 --colours 48

simulate 'open area' marulan --seconds 0.1 --scale 0.4 --streams VideoVisual --condition scene=open
simulate 'houses, night with lights' marulan --seconds 0.1 --scale 0.4 --streams VideoVisual \
    --condition scene=houses --condition light=night_lights --condition human=walking
simulate 'dam, low sun' marulan --seconds 0.1 --scale 0.4 --streams VideoVisual \
    --condition scene=dam --condition light=low_sun
draw marulan-places 'Marulan, simulated: where the Argo drives' 'open area' \
    --beside "$days/houses, night with lights" --beside "$days/dam, low sun" --panel VideoVisual --dpi 75

# Figures 24 to 38 of document 004, by their numbers.
ranges() { # NUMBER TITLE DAY OPTION...: range over bearing, of all that was recorded
    number=$1 title=$2 day=$3 && shift 3
    draw "figure-$number" "$title" "$day" --from +0s --sector 45 --reach 15 "$@"
}
signals() { # NUMBER TITLE DAY OPTION...: a line of the visual images, where LaserHorizontal meets the scene
    number=$1 title=$2 day=$3 && shift 3
    draw "figure-$number" "$title" "$day" --row 0.42 "$@"
}
ranges 24 'Simulated, clear air: image and LaserHorizontal' 'clear air' --columns 1 \
    --panel VideoVisual --panel LaserHorizontal+truth/objects:lines
ranges 25 'Simulated, clear air: image, LaserPort and LaserStarboard' 'clear air' \
    --panel VideoVisual --panel LaserPort+truth/objects:lines --panel LaserStarboard+truth/objects:lines --dpi 80
ranges 26 'Simulated, clear air: LaserHorizontal as dots and as lines' 'clear air' \
    --panel LaserHorizontal:dots --panel LaserHorizontal:lines
ranges 27 'Simulated, clear air: the radar as dots and as lines' 'clear air' \
    --panel RadarRangeBearing:dots --panel RadarRangeBearing:lines
ranges 28 'Simulated, heavy dust: LaserHorizontal and radar' dust \
    --panel LaserHorizontal:dots --panel RadarRangeBearing:dots
ranges 29 'Simulated, heavy dust: LaserPort and LaserStarboard' dust \
    --panel LaserPort:dots --panel LaserStarboard:dots
ranges 30 'Simulated, smoke: LaserHorizontal and radar' smoke \
    --panel LaserHorizontal:dots --panel RadarRangeBearing:dots
ranges 31 'Simulated, heavy rain: LaserHorizontal and radar' 'heavy rain' \
    --panel LaserHorizontal:lines --panel RadarRangeBearing:dots
ranges 32 'Simulated, light rain: LaserHorizontal and radar' 'light rain' \
    --panel LaserHorizontal:lines --panel RadarRangeBearing:dots
ranges 33 'Simulated, clear after rain: LaserHorizontal and radar' 'after rain' \
    --panel LaserHorizontal:lines --panel RadarRangeBearing:dots
signals 34 'Simulated, smoke: a line of the images over time' smoke --from +0s --at +1.2s \
    --panel VideoVisual:time --panel VideoVisual:marked
signals 35 'Simulated, clear air: a line of one image' 'clear air' \
    --panel VideoVisual:row --panel VideoVisual:marked
signals 36 'Simulated, clear air: the line of all images' 'clear air' --from +0s \
    --panel VideoVisual:row --panel VideoVisual:time
signals 37 'Simulated, dust: the line of all images' dust --from +0s \
    --panel VideoVisual:row --panel VideoVisual:time
signals 38 'Simulated, smoke: the line of all images' smoke --from +0s \
    --panel VideoVisual:row --panel VideoVisual:time

# InSight
simulate sol insight --seconds 34 --streams 'Arm/SciHi*' --condition story=soil
draw insight-press 'InSight, simulated: the arm presses on the soil twice at one place' sol \
    --panel Arm/SciHi/Forces+truth/contact:Fz --panel truth/contact:depth --panel truth/contact:Fz~depth --dpi 80
simulate imaging insight --seconds 120 --scale 0.5 --streams IDC --condition story=imaging
draw insight-idc 'InSight, simulated: pictures of the camera on the arm' imaging/truth/idc --at 3 --at 7
